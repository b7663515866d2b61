"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.blocks import Blocks, FromTask, FullRows
from unmask.data.continuing import ContinuingPairs, ContinuingRows
from unmask.data.discourse import Discourse
from unmask.data.distance import Distance
from unmask.data.elsewhere import Elsewhere
from unmask.data.labelled import Labelled
from unmask.data.pairs import NextSentence, SentenceOrder, ThreeWay
from unmask.data.reordered import Reordered
from unmask.data.shards import Collection, Shards, Texts
from unmask.data.source_target import SourceTarget
from unmask.data.titles import TitlePairs, TitleRelevance

__all__ = [
    "Blocks", "Collection", "ContinuingPairs", "Discourse", "Distance", "Elsewhere", "FromTask", "Labelled", "NextSentence", "Reordered",
    "SentenceOrder", "Shards", "SourceTarget", "FullRows", "ContinuingRows", "Texts", "ThreeWay", "TitlePairs", "TitleRelevance",
]  # fmt: skip
