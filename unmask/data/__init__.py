"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.blocks import Blocks, FromTask, FullRows
from unmask.data.continuing import ContinuingPairs, ContinuingRows
from unmask.data.discourse import Discourse
from unmask.data.distance import Distance
from unmask.data.elsewhere import Elsewhere
from unmask.data.pairs import NextSentence, SentenceOrder, ThreeWay
from unmask.data.reordered import Reordered
from unmask.data.shards import Collection, Shards, Texts
from unmask.data.titles import TitlePairs, TitleRelevance

__all__ = [
    "Blocks", "Collection", "ContinuingPairs", "FromTask", "NextSentence", "SentenceOrder", "Shards", "FullRows",
    "ContinuingRows", "Discourse", "Distance", "Elsewhere", "Reordered", "Texts", "ThreeWay", "TitlePairs", "TitleRelevance",
]  # fmt: skip
