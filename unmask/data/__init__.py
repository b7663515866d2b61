"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.blocks import Blocks, FromTask, FullRows
from unmask.data.continuing import ContinuingPairs, ContinuingRows
from unmask.data.pairs import NextSentence, SentenceOrder, ThreeWay
from unmask.data.shards import Collection, Shards, Texts
from unmask.data.source_target import SourceTarget

__all__ = [
    "Blocks", "Collection", "ContinuingPairs", "FromTask", "NextSentence", "SentenceOrder", "Shards", "SourceTarget",
    "FullRows", "ContinuingRows", "Texts", "ThreeWay",
]  # fmt: skip
