"""From prepared shards to batches: arrange into examples, pack into rows, load in a repeatable order."""

from unmask.data.arrange import Arrange, Blocks, Given, NextSentence, Stream
from unmask.data.shards import Collection, Shards, Texts

__all__ = ["Arrange", "Blocks", "Collection", "Given", "NextSentence", "Shards", "Stream", "Texts"]
