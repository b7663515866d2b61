"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.arrange import Arrange, Blocks, Given, Stream
from unmask.data.pairs import NextSentence, SentenceOrder, ThreeWay
from unmask.data.shards import Collection, Shards, Texts

__all__ = [
    "Arrange", "Blocks", "Collection", "Given", "NextSentence", "SentenceOrder", "Shards", "Stream", "Texts", "ThreeWay",
]  # fmt: skip
