"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.arrange import Arrange, Blocks, Given, Stream
from unmask.data.pairs import NextSentence, SentenceOrder, ThreeWay
from unmask.data.shards import Collection, Shards, Texts
from unmask.data.streams import Continued, Streams

__all__ = [
    "Arrange", "Blocks", "Collection", "Continued", "Given", "NextSentence", "SentenceOrder", "Shards", "Stream",
    "Streams", "Texts", "ThreeWay",
]  # fmt: skip
