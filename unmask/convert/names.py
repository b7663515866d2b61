"""Names of tensors and heads: how a family's file lists what Hugging Face calls the tensors that we have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Tensors of ours: those of theirs that hold the same numbers, one after the other; {} for the number of a token table.
Table = dict[str, tuple[str, ...]]

_OLD_NAMES = (
    (re.compile(r"LayerNorm\.gamma$"), "LayerNorm.weight"),  # as converted from TensorFlow
    (re.compile(r"LayerNorm\.beta$"), "LayerNorm.bias"),
    (re.compile(r"^((cls\.)?predictions|lm_head)\.decoder\.bias$"), r"\1.bias"),  # one tensor under two names
)


@dataclass(frozen=True)
class Heads:
    """The objectives of a model by the names that its recipe gives them."""

    tokens: str | None = None  # predicts tokens
    sentence: str | None = None  # answers the sentence task of pretraining
    label: str | None = None  # answers a task with classes
    replaced: str | None = None  # finds tokens that a generator replaced
    tied: bool = True  # the output weights of `tokens` are the token embeddings

    @property
    def kinds(self) -> tuple[str, ...]:
        """The heads that there are, in the order of the fields: a key of `Family.architectures`."""
        return tuple(kind for kind in ("tokens", "sentence", "label", "replaced") if getattr(self, kind))


@dataclass(frozen=True)
class Names:
    """What one family calls its tensors. A head that it does not have is an empty table."""

    prefix: str  # of the network under a head
    network: Table  # what is outside of the blocks; theirs under the prefix
    place: str  # of a block under the prefix, {} for its number
    block: Table  # theirs under the place
    tokens: Table
    label: Table
    sentence: Table = field(default_factory=dict)
    replaced: Table = field(default_factory=dict)
    transposed: tuple[str, ...] = ()  # our names of tensors of a block that are stored input first (Conv1D)
    # Of tensors with more dimensions than ours, each dimension: a field of our backbone, or a number.
    shapes: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    computed: str = r"(?!)"  # a pattern: tensors of the file that can be computed from the rest
    others: tuple[str, ...] = ()  # tensors or modules under the prefix that no table names

    def inside(self, ours: str) -> str | None:
        """Their name of a tensor outside of the blocks."""
        return self.prefix + self.network[ours][0] if ours in self.network else None

    @property
    def token(self) -> str:
        return self.prefix + self.network["embed.token.weight"][0]

    @property
    def position(self) -> str | None:
        return self.inside("embed.position.weight")

    @property
    def segment(self) -> str | None:
        return self.inside("embed.segment.weight")

    @property
    def output(self) -> str:
        """The output weights of the head that predicts tokens."""
        return self.tokens["weight"][0]

    @property
    def per_token(self) -> tuple[str, ...]:
        """The tensors with one row per token of the vocabulary."""
        return self.token, self.output, *self.tokens.get("bias", ())

    @property
    def _first_words(self) -> set[str]:
        """The first word of every name under the prefix: a file of the network alone has no prefix."""
        heads = [name for table in (self.label, self.sentence) for theirs in table.values() for name in theirs]
        inside = [name.removeprefix(self.prefix) for name in heads if name.startswith(self.prefix)]
        inside += [name for theirs in self.network.values() for name in theirs]
        return {name.split(".")[0] for name in (*inside, self.place, *self.others)}

    def canonical(self, name: str) -> str:
        """A name as the newest files write it under a head."""
        if name.split(".")[0] in self._first_words:
            name = self.prefix + name
        for old, new in _OLD_NAMES:
            name = old.sub(new, name)
        return name

    def is_computed(self, name: str) -> bool:
        """Does a file hold this only for convenience?"""
        return bool(re.search(self.computed, name))


def layers(named: dict[str, str]) -> Table:
    """The weights and biases of layers; several of theirs have spaces between them."""
    return {
        f"{ours}.{which}": tuple(f"{name}.{which}" for name in theirs.split())
        for ours, theirs in named.items()
        for which in ("weight", "bias")
    }
