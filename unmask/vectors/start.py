"""FromVectors: the token embeddings of a network start as word vectors from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.axes import Need, Part
from unmask.errors import require
from unmask.vectors.vector_file import dims_of, read_vectors


@dataclass(frozen=True)
class FromVectors(Part):
    """Token embeddings start as word vectors from a file. The vector of a token is found by the word that the token spells."""

    file: str | None = None  # of word vectors, as `unmask vectors` writes it; none: it must be set before training
    zeros: bool = False  # tokens without a vector start as zeros (CoVe); otherwise they keep their random numbers

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("one table", "it writes one vector for each token"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"word vectors"})

    def check(self, width: int) -> None:
        require(
            self.file is not None,
            "start.file is none, and the embeddings start as word vectors: make a file with 'unmask vectors CORPUS --dims {dims} "
            "--out v.txt', and pass --set start.file=v.txt",
            dims=width,
        )
        assert self.file is not None
        dims = dims_of(self.file)
        require(
            dims == width,
            "{file} has vectors of {dims}, and the embeddings have {width} numbers: make vectors with --dims {width}, or set the "
            "width of the embeddings (system.backbone.embedding or system.backbone.width) to {dims}",
            file=self.file,
            dims=dims,
            width=width,
        )

    def fill(self, table: Tensor, biases: Sequence[Tensor], words: Sequence[str | None], sample: Any) -> str:
        """Write the first values into a table of embeddings. `words`: what each token spells; None: it is no word.

        Returns a notice: how many tokens have a vector."""
        self.check(table.shape[1])
        assert self.file is not None
        vectors = read_vectors(self.file)
        found = [_place(vectors.places, word) for word in words]
        rows = [token for token, place in enumerate(found) if place is not None]
        require(
            bool(rows),
            "{file} has none of the words of the tokenizer, such as {example!r}: give vectors of the same language and script",
            file=self.file,
            example=next((word for word in words if word), ""),
        )
        with torch.no_grad():
            if self.zeros:
                table.zero_()
            chosen = vectors.matrix[[place for place in found if place is not None]]
            table[rows] = torch.from_numpy(chosen).to(table)
        asked = sum(word is not None for word in words)
        rest = "start as zeros" if self.zeros else "start with random numbers"
        return f"{len(rows):,} of {asked:,} tokens of the vocabulary ({len(rows) / asked:.0%}) start as their vectors in {self.file}; the others {rest}"


def _place(places: dict[str, int], word: str | None) -> int | None:
    """The row of a word, as it is written or in lower case."""
    return None if word is None else places.get(word, places.get(word.lower()))
