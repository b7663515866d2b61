"""Tables of names: for each of our tensors, its name in the files of a Hugging Face family."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Our tensor: the Hugging Face tensors that are joined to it, in order. {} is the number of a token table.
Table = dict[str, tuple[str, ...]]

_OLD_NAMES = (
    (re.compile(r"LayerNorm\.gamma$"), "LayerNorm.weight"),  # in checkpoints that were converted from TensorFlow
    (re.compile(r"LayerNorm\.beta$"), "LayerNorm.bias"),
    (re.compile(r"^((cls\.)?predictions|lm_head)\.decoder\.bias$"), r"\1.bias"),  # one tensor under two names
)


@dataclass(frozen=True)
class Heads:
    """The heads of a model: for each kind of head, the name of the objective in the recipe."""

    tokens: str | None = None  # predicts tokens
    sentence: str | None = None  # predicts the answer of the sentence task of pretraining
    label: str | None = None  # predicts the class of a text
    replaced: str | None = None  # finds tokens that a generator replaced
    tags: str | None = None  # predicts a tag for each token
    span: str | None = None  # predicts where an answer begins and ends
    choice: str | None = None  # scores each of several choices
    tied: bool = True  # whether the output weights of `tokens` are the token embeddings

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of heads that the model has, in the order of the fields. It is a key of `Family.architectures`."""
        kinds = ("tokens", "sentence", "label", "replaced", "tags", "span", "choice")
        return tuple(kind for kind in kinds if getattr(self, kind))


@dataclass(frozen=True)
class Names:
    """The names of the tensors of one family. If the family does not have a head, the table of that head is empty."""

    prefix: str  # the prefix of the network's tensors in a model with a head
    network: Table  # tensors outside of the blocks; their names follow the prefix
    place: str  # the prefix of a block, after `prefix`; {} is the number of the block
    block: Table  # tensors of a block; their names follow `place`
    tokens: Table  # tensors of the head that predicts tokens
    label: Table  # tensors of the head that predicts a class
    sentence: Table = field(default_factory=dict)  # tensors of the head for the sentence task
    replaced: Table = field(default_factory=dict)  # tensors of the head that finds replaced tokens
    # tensors of the heads for tags and for answers; which of them a family has, its `architectures` say
    tags: Table = field(default_factory=lambda: layers({"out": "classifier"}))
    span: Table = field(default_factory=lambda: layers({"out": "qa_outputs"}))
    choice: Table = field(default_factory=dict)  # tensors of the head that scores choices
    transposed: tuple[str, ...] = ()  # our names of block tensors that are stored as input x output (Conv1D)
    # For tensors with more dimensions than ours, the size of each dimension: a field of our backbone, or a number.
    shapes: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    embed: str = "embed."  # the prefix of our embeddings
    # for a network with several stacks of blocks: our prefix of each, and its `place` and `block`; {}: one stack, "blocks"
    stacks: dict[str, tuple[str, Table]] = field(default_factory=dict)
    computed: str = r"(?!)"  # a pattern for tensors of the file that can be computed and are not read
    others: tuple[str, ...] = ()  # other tensors or modules under the prefix

    def inside(self, ours: str) -> str | None:
        """The Hugging Face name of one of our tensors outside of the blocks."""
        return self.prefix + self.network[ours][0] if ours in self.network else None

    @property
    def token(self) -> str:
        return self.prefix + self.network[f"{self.embed}token.weight"][0]

    @property
    def position(self) -> str | None:
        return self.inside(f"{self.embed}position.weight")

    @property
    def position_tables(self) -> tuple[str, ...]:
        """All tables of positions: a decoder may have its own."""
        return tuple(
            self.prefix + theirs[0] for ours, theirs in self.network.items() if ours.endswith("embed.position.weight")
        )

    @property
    def all_stacks(self) -> dict[str, tuple[str, Table]]:
        """Our prefix of each stack of blocks, their prefix of a block, and the table of a block."""
        return self.stacks or {"blocks": (self.place, self.block)}

    @property
    def segment(self) -> str | None:
        return self.inside(f"{self.embed}segment.weight")

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
        """The first word of every name after the prefix. A file of a network without a head has no prefix."""
        heads = [name for table in (self.label, self.sentence) for theirs in table.values() for name in theirs]
        inside = [name.removeprefix(self.prefix) for name in heads if name.startswith(self.prefix)]
        inside += [name for theirs in self.network.values() for name in theirs]
        return {name.split(".")[0] for name in (*inside, self.place, *self.others)}

    def canonical(self, name: str) -> str:
        """The name as the newest files write it in a model with a head."""
        if name.split(".")[0] in self._first_words:
            name = self.prefix + name
        for old, new in _OLD_NAMES:
            name = old.sub(new, name)
        return name

    def is_computed(self, name: str) -> bool:
        """Whether this tensor can be computed, so that it is not read."""
        return bool(re.search(self.computed, name))


def layers(named: dict[str, str]) -> Table:
    """The table of the weights and biases of layers. If one of our layers joins several, their names have spaces between."""
    return {
        f"{ours}.{which}": tuple(f"{name}.{which}" for name in theirs.split())
        for ours, theirs in named.items()
        for which in ("weight", "bias")
    }
