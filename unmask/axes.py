"""Axes: the protocol that a part of each axis implements, and the list of facts that parts need and give.

A part is a frozen dataclass. It declares what it needs and what it gives; no code outside a part checks its class.
Two kinds of facts contain a name: `column:word` is a column of the data, `targets:tokens` are targets that `hide` fills.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:  # listing recipes must not wait for torch
    from pathlib import Path

    import numpy as np
    import torch
    from torch import Tensor, nn

    from unmask.batch import Batch, Vocabulary
    from unmask.init_weights import InitWeights

# what replaces a hidden token; moved: a token of the same unit; infilled: one [MASK] for the whole unit
Way = Literal["mask", "random", "keep", "moved", "infilled", "deleted"]
Pattern = Literal["everything", "left", "ranked"]  # what an attention kernel may rely on; "ranked" is any rule by rank
AskedAt = Literal[
    "targets", "tokens", "examples"
]  # where an objective is computed: at targets, at all tokens, per example


ALL_TOKENS = 1 << 40  # the `memory` of a network that remembers every token of earlier rows: the cells of an LSTM


@dataclass(frozen=True)
class Fact:
    """One entry of the closed list of facts."""

    words: str  # completes "NAME needs ..."
    settings: tuple[str, ...] = ()  # each of these gives the fact; an error offers them as advice


FACTS: dict[str, Fact] = {
    # shapes of data
    "pairs": Fact("two texts in each example", ("arrange=NextSentence",)),
    "halves": Fact(
        "sources and targets that each fill at most half of a row",
        ("arrange=SourceTarget", "arrange=SourceTarget(alone=true)"),
    ),
    "examples": Fact("the examples of a task"),
    "labels": Fact("a class for each example", ("arrange=NextSentence",)),
    "connectives": Fact("texts that a connective joins", ("arrange=Discourse",)),
    "continuing rows": Fact("rows that continue the rows before them", ("arrange=ContinuingRows",)),
    "random lengths": Fact("rows of another length at each step", ("arrange=ContinuingRows(deviation=5.0)",)),
    "decoder rows": Fact("rows for a decoder", ("hide=Rewrite", "hide=Window", "hide=WriteSecond")),
    "decoder": Fact("a backbone with a decoder", ("system.backbone=EncoderDecoder",)),
    "unpacked rows": Fact(
        "rows that hold one example each",
        ("arrange=FullRows", "arrange=ContinuingRows"),
    ),
    "mask token": Fact("a tokenizer with a [MASK] token"),
    # fields filled later
    "covered": Fact("predicted tokens that are hidden in the text", ("hide=Masked", "hide.replace=Mask")),
    "single tokens": Fact("decoder rows for a single token of the text", ("hide=Rewrite", "hide=Window")),
    "in the text": Fact("targets in the text that is read, not in the rows of a decoder", ("hide=Masked",)),
    "one earlier": Fact("hidden tokens that are predicted from the position before them", ("hide=Masked(at=before)",)),
    "from before": Fact("tokens that are predicted from a position before them", ("hide=Next",)),
    "second text": Fact(
        "targets that are all in the second of two texts", ("hide=Next(second=true)", "hide=WriteSecond")
    ),
    "original": Fact("a generator that replaces tokens", ("system=GeneratorDiscriminator",)),
    "order": Fact("tokens in a random order", ("see=Permuted",)),
    "second stream": Fact(
        "a second stream that does not see the token it predicts",
        ("system.backbone.streams=2", "system.backbone=TransformerXL(streams=2)"),
    ),
    "memory": Fact("a memory of the rows before", ("system.backbone=TransformerXL",)),
    "cells": Fact("a recurrent network whose cells are its memory", ("system.backbone=LSTM",)),
    "two halves": Fact("vectors with one half for each direction", ("system.backbone=TwoWayLSTM",)),
    # the backbone then has the numbers `one_way` (the highest of these layers) and `direction` (the width of a half)
    "one-way layers": Fact(
        "a layer in which each half of the vectors sees one direction",
        ("system.backbone=TwoWayLSTM", "system.backbone=BiLSTM"),
    ),
    "no summary": Fact(
        "vectors of which none has read the whole text", ("system.backbone=TwoWayLSTM", "system.backbone=BiLSTM")
    ),
    "equal layers": Fact(
        "layers that are all as wide as the last", ("system.backbone.inner=none", "system.backbone=Transformer")
    ),
    "one table": Fact("one table of token embeddings", ("system.backbone.cutoffs=()", "system.backbone=Transformer")),
    "kept encoder": Fact(
        "a backbone of which tasks with labels keep only the encoder", ("system.backbone=AttentiveLSTM",)
    ),
    "word vectors": Fact("token embeddings that start as word vectors", ("start=FromVectors",)),
    "any width": Fact(
        "a backbone whose embeddings may differ in width from its layers", ("system.backbone=Transformer",)
    ),
    "rotation": Fact("attention that rotates queries and keys", ("system.backbone.attention=Full",)),
    "task embeddings": Fact("embeddings of tasks", ("system.backbone.tasks=2",)),
    "windows": Fact("layers in which tokens see only a window", ("system.backbone.local=Local",)),
    "entity vectors": Fact(
        "a network that reads the entities of a graph",
        ("system.backbone.knowledge=Fusion", "system.backbone=Transformer(knowledge=Fusion)"),
    ),
    "components": Fact(
        "a network that reads the components of characters",
        ("system.backbone.components=Components", "system.backbone=Transformer(components=Components)"),
    ),
    "clusters": Fact("adaptive embeddings", ("system.backbone=TransformerXL(cutoffs=(20000, 40000))",)),
    # directions
    "left": Fact("tokens that see only the tokens before them", ("see=LeftToRight",)),
    "right": Fact("tokens that see only the tokens after them", ("see=RightToLeft",)),
    "both sides": Fact("tokens that see both sides", ("see=Everything",)),
    "prefix": Fact("a second text that sees the first text and its own past", ("see=Prefix",)),
    "future hidden": Fact("a view in which no token sees a later one", ("see=LeftToRight",)),
    "past hidden": Fact("a view in which no token sees an earlier one", ("see=RightToLeft",)),
    # scores that an objective computes
    "token scores": Fact("an objective that scores tokens", ("predict.tokens=Tokens",)),
    "original scores": Fact("an objective that scores whether each token is the original one"),
    "class scores": Fact("an objective that scores classes"),
    "choice scores": Fact("an objective that scores choices"),
    "text vectors": Fact("an objective that makes one vector of each text"),
    "pair scores": Fact("an objective that scores the classes of two texts that are read apart"),
    "scores of each class": Fact("an objective that says for each class whether an example has it"),
    "numbers": Fact("an objective that predicts a number"),
    "relation scores": Fact("an objective that scores relations between two entities"),
    "entity scores": Fact("an objective that scores entities"),
    "compared rows": Fact("an objective that compares the rows of a batch with each other"),
    "tag scores": Fact("an objective that scores the tags of each token"),
    "sequence scores": Fact("an objective that scores whole sequences of tags"),
    "span scores": Fact("an objective that scores where an answer begins and ends"),
}


# targets whose answers are not tokens: the column that holds their answers
COLUMN_OF_TARGETS = {"entities": "links"}


def fact(name: str) -> Fact:
    """An entry of the list. The entry of a `column:` or `targets:` fact is made from its name."""
    kind, _, inner = name.partition(":")
    if kind == "column" and inner:
        return Fact(f"the column {inner!r} in the data")
    if kind == "targets" and inner:
        if inner in COLUMN_OF_TARGETS:
            return Fact(f"the targets {inner!r}", ("hide=(Masked, Links)",))
        ahead = inner.removeprefix("ahead_")
        usual = ("hide=Previous", "hide=(Next, Previous)") if inner == "previous" else ("hide=Masked", "hide=Next")
        givers = (f"hide=Next(ahead={ahead})",) if ahead.isdecimal() else usual
        return Fact(f"the targets {inner!r}", givers)
    return FACTS[name]


@dataclass(frozen=True)
class Need:
    """What a part cannot work without."""

    fact: str  # a fact, or alternatives with | between them
    because: str  # a clause with the part as its subject: "it predicts the next token"
    unless: str = ""  # a setting of this part that removes the need, such as "memory=0"

    @property
    def alternatives(self) -> tuple[str, ...]:
        return tuple(self.fact.split("|"))


class Part:
    """Base class of the parts of a recipe, which are frozen dataclasses. By default a part needs and gives nothing."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def needs(self) -> tuple[Need, ...]:
        """What other parts of the recipe must give."""
        return ()

    @property
    def gives(self) -> frozenset[str]:
        """What other parts may rely on."""
        return frozenset()

    @property
    def must_use(self) -> frozenset[str]:
        """The gives that another part must read: otherwise an option has no effect."""
        return frozenset()


class PartLike(Protocol):
    """What every part declares. A part outside the package does not have to inherit from `Part`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def needs(self) -> tuple[Need, ...]: ...

    @property
    def gives(self) -> frozenset[str]: ...

    @property
    def must_use(self) -> frozenset[str]: ...


class TokenizerKind(PartLike, Protocol):
    """A recipe's `tokenizer`: the kind to train."""

    @property
    def vocab(self) -> int: ...


class Curve(PartLike, Protocol):
    """A number that changes while a network is trained."""

    @property
    def most(self) -> float:
        """Its largest value."""

    @property
    def least(self) -> float:
        """Its smallest value."""

    def of(self, number: int, count: int) -> Curve:
        """The curve of loss `number` in a group of `count` losses, counted from 1."""

    def at(self, done: Any) -> Any:
        """Its value when this share of the training is done. It returns a number for a number, a tensor for a tensor."""


class Arrange(PartLike, Protocol):
    """A recipe's `arrange`: how documents become examples and rows."""

    @property
    def classes(self) -> int:
        """The number of classes of its sentence task; 0: it has no such task."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What each class means."""

    @property
    def packed(self) -> bool:
        """Whether several examples may share a row."""

    @property
    def continuous(self) -> bool:
        """Whether each row continues the same row of the batch before it."""

    def ready(self, tokenizer: Any) -> Any:
        """What makes the examples with this tokenizer: it has `runs` and `packed`. Most arrangements return themselves."""

    def runs(self, texts: Any, layout: str, length: int, rng: Any) -> Any:
        """Examples of at most `length` tokens."""

    def open(
        self, collection: Any, tokenizer: Any, layout: str, length: int, seed: int, *, shuffled: bool = True
    ) -> Any:
        """The reader of a data set: see `unmask.data.reader`. `shuffled`: whether documents may come in any order."""


class Units(PartLike, Protocol):
    """A rule's `units`: the pieces of text that are hidden as a whole."""

    @property
    def longest(self) -> int:
        """The largest number of words or tokens in one unit."""

    @property
    def least(self) -> int:
        """The smallest number of target places that a row must have."""

    @property
    def law(self) -> tuple[float, ...] | None:
        """The wanted share of units of length 1, 2, 3 ...; None: the text decides how long units are."""

    @property
    def levels(self) -> dict[str, float]:
        """The share of rows that take each level, by name; {}: there are no levels."""

    def level(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        """B, the level that each row takes, as an index into `levels`; None: there are no levels."""

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        """B T, the number of each token's unit within its row, from 0 to T - 1; -1: the token is in no unit."""

    def parts(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        """B T, the same for the parts of units: a unit with parts is cut where the budget ends. None: units stay whole."""


class Replace(PartLike, Protocol):
    """A rule's `replace`: what the chosen tokens are replaced by."""

    @property
    def purpose(self) -> str:
        """The name of the random draw that chooses the tokens. Rules with one name choose by the same random numbers."""

    @property
    def shares(self) -> dict[Way, float]:
        """The share of the chosen tokens that is replaced in each way."""

    @property
    def draw(self) -> Literal["token", "span"]:
        """Whether the way is drawn for each token, or once for each run of chosen tokens."""

    @property
    def keeps_places(self) -> bool:
        """Whether the row has the same number of tokens afterwards."""

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Any]:
        """The new ids, B T, and a `Source` of unmask.hide.source: where each token came from; None: every token stays."""


class InPlace(Protocol):
    """A rule that replaces tokens in the text itself."""

    @property
    def units(self) -> Units: ...

    @property
    def budget(self) -> float | Curve:
        """The share of a row's tokens that it hides."""

    @property
    def replace(self) -> Replace: ...

    @property
    def copies(self) -> int | None:
        """The number of versions of each row (static masking); None: new choices at every visit."""


class Hide(PartLike, Protocol):
    """A recipe's `hide`, or one rule of it: a pure function from a batch to the batch with targets."""

    @property
    def share(self) -> float:
        """The largest number of predictions per token of a row."""

    @property
    def longest(self) -> int:
        """The largest number of words or tokens in one hidden unit."""

    @property
    def in_place(self) -> InPlace | None:
        """The rule itself, if it replaces tokens in the text; None: the text stays as it is."""

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch: ...

    def chosen(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor | None:
        """B T, True on the tokens that it hides in the text; None: it hides none."""

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Any:
        """A `Source` of unmask.hide.source: where each token of the changed batch came from; None: every token stays."""

    def rows_for_token(self, batch: Batch, place: Tensor, vocabulary: Vocabulary) -> Batch:
        """Of a rule that gives "single tokens": the rows of a decoder that predicts one token of each row as in training, with
        this token as the only target of the row. `place`: B, where the token is in the text before any rule changed it."""


class See(PartLike, Protocol):
    """A recipe's `see`: which tokens each token sees, as one integer (its rank) per token."""

    @property
    def pattern(self) -> Pattern: ...

    @property
    def reading(self) -> See:
        """The view that a finished model reads with."""

    def draw(self, batch: Batch, seed: int) -> Batch:
        """The batch with the random order of this view, if it has one. It is called before `hide`."""

    def apply(self, batch: Batch) -> Batch:
        """The batch with the rank of every token."""


class Backbone(PartLike, Protocol):
    """A network from tokens to vectors."""

    @property
    def layers(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def length(self) -> int:
        """The longest example, in tokens."""

    @property
    def segments(self) -> int:
        """The number of segment kinds that it distinguishes; 0: it ignores segments."""

    @property
    def embedding(self) -> int | None:
        """The width of the embeddings; None: the width of the layers."""

    @property
    def memory(self) -> int:
        """The number of tokens of earlier rows that stay visible; 0: no memory; ALL_TOKENS: all, in cells of one size."""

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""

    @property
    def fresh(self) -> InitWeights:
        """How its layers and its heads are initialised."""

    def build(self, vocabulary: int, pattern: Pattern, embed: Any = None) -> Any:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass."""

    def outputs(self, vocabulary: int) -> float:
        """The number of full-width rows of the token table; a narrower row counts as a fraction."""


class Objective(PartLike, Protocol):
    """An entry of a recipe's `predict`."""

    @property
    def asked_at(self) -> AskedAt: ...

    @property
    def layer(self) -> int | None:
        """The layer that it reads, counted from 1; None: the last layer."""

    @property
    def target(self) -> str | None:
        """The name of the targets that it predicts; None: it predicts no targets."""

    @property
    def reads_decoder(self) -> bool:
        """Whether it reads the vectors of a decoder that reads the text a second time, if the network has one (BART)."""

    @property
    def penalty(self) -> bool:
        """Whether it only limits the network, such as the size of its vectors: then it is no part of the held-out loss."""

    def each(self, name: str, layers: int) -> dict[str, Objective]:
        """The objectives that it becomes in a network with this number of layers, by the names of their losses."""

    def around(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor] | None:
        """For an objective that reads the vectors around a target, not the vector at the target. N each: the flat index
        left of each target, the flat index right of it, and a weight, 0 where one of them is missing. None: it does not
        read other positions."""

    def build(self, width: int, embedding: Any, initial: InitWeights) -> nn.Module:
        """A module with `forward(hidden, batch) -> Loss`, `count(batch)` and, for inference, `decode(hidden, batch)`.

        If it gives several kinds of scores, `decodes` names the method that computes each, by fact."""

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of one forward pass."""


class Start(PartLike, Protocol):
    """A recipe's `start`: what a network knows about single tokens before training."""

    def check(self, width: int) -> None:
        """Refuse a start that cannot fill embeddings of this width. It is fast: it is called before any work is done."""

    def fill(
        self, table: Tensor, biases: Sequence[Tensor], words: Sequence[str | None],
        sample: Callable[[int], Iterator[tuple[Any, Any]]],
    ) -> str:  # fmt: skip
        """Write the first values into a table of embeddings, and return a notice.

        `biases`: those of the outputs that predict tokens, one number for each token; it may write them too. `words`: what each
        token spells; None: it is no word. `sample(tokens)`: about this many tokens of the training text, in pieces: their ids, and
        the number of the document of each."""


class System(PartLike, Protocol):
    """A recipe's `system`: how networks and objectives become one training step."""

    @property
    def backbone(self) -> Backbone:
        """The network that is adapted and served."""

    @property
    def networks(self) -> dict[str, Backbone]:
        """All its networks, by the names of their fields."""

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of the losses that it computes besides those of the objectives."""

    @property
    def rates(self) -> dict[str, float | Curve]:
        """The learning rate of each network as a share of `optimise.rate`, by the names that `asks` uses."""

    @property
    def gentler(self) -> tuple[str, ...]:
        """Settings with which the served network learns more slowly or later than the others; (): there are no others."""

    def asks(self, predict: dict[str, Objective]) -> dict[str, dict[str, Objective]]:
        """The objectives of each network, by the network's name. `predict`: the objectives of the recipe."""

    def build(self, recipe: Any, vocabulary: Vocabulary, seed: int) -> Any:
        """A module with `hide`, `step`, `look`, `read_on`, `keep`, `backbone` and `predict`: see `unmask.system`."""

    def flops(self, recipe: Any, vocabulary: int, length: int, share: float) -> float:
        """Floating-point operations per token of one forward pass. `share`: the share of tokens that are predicted."""


class Optimise(PartLike, Protocol):
    """A recipe's `optimise`."""

    @property
    def rate(self) -> float: ...

    @property
    def warmup(self) -> float: ...

    @property
    def clip(self) -> float | None: ...

    @property
    def average(self) -> Any:
        """The share of the average of the weights that a step keeps; None: the weights are not averaged. Or when the average
        begins: see `unmask.train.average`."""

    def build(self, model: nn.Module) -> torch.optim.Optimizer: ...

    def set(self, optimiser: torch.optim.Optimizer, moment: Any) -> float:
        """Set the learning rate of a step, and return it."""


class Pretrained(Protocol):
    """The pretrained model that is given to a task."""

    @property
    def recipe(self) -> Any: ...

    @property
    def tokenizer(self) -> Any: ...

    @property
    def folder(self) -> Path: ...

    @property
    def length(self) -> int:
        """The longest text that it reads, in tokens."""


@dataclass(frozen=True)
class Window:
    """What a model says about each token of one row."""

    scores: np.ndarray  # T, or T with a trailing shape
    columns: dict[str, np.ndarray]  # by name, T each, or with a trailing shape
    summary: int  # the index of the summary token


class Reader(Protocol):
    """The adapted model that a task gets answers from. `laid`: a `Laid` of unmask.data.examples."""

    @property
    def name(self) -> str:
        """The name of the model in error messages."""

    @property
    def length(self) -> int:
        """The longest text that it reads, in tokens."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""

    def scores(self, fact: str, laid: Any) -> tuple[list[np.ndarray], Counter[str]]:
        """For each example the scores of the objective that gives this fact; and the notes."""

    def windows(self, fact: str, laid: Any) -> tuple[list[list[Window]], Counter[str]]:
        """For each example the windows that it was read in, with scores per token, of the objective that gives this fact."""

    def losses(self, laid: Any) -> dict[str, float]:
        """The mean of each loss over the examples, hidden and seen as in training."""

    def write(
        self, sources: Sequence[str], *, tokens: int, beams: int, length_penalty: float, length_offset: int, least: int,
        no_repeat: int,
    ) -> tuple[list[str], Counter[str]]:  # fmt: skip
        """For each source the best text of at most this number of tokens, found by beam search; and the notes."""


class Example(Protocol):
    """One example of a task."""

    @property
    def where(self) -> str:
        """Its name in error messages, such as its file and line; may be empty."""

    @property
    def row(self) -> Mapping[str, Any]:
        """All columns that it was read from."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The texts by which a user recognises it."""


class Answer(Protocol):
    """What a model answers to one example."""

    def columns(self, top: int) -> dict[str, Any]:
        """The `top` best answers as columns of a table."""

    def as_json(self, top: int) -> dict[str, Any]:
        """The whole answer; with `top` over 1, the best ones in order."""


@dataclass(frozen=True)
class Answered:
    """The answers to some examples."""

    answers: Sequence[Any]  # an `Answer` for each example, in the order of the examples
    notes: Counter[str]  # what was cut from the texts, and what else a user should know


@dataclass(frozen=True)
class Judged:
    """How good a model is on a dev set."""

    score: float  # higher is better: the weights with the highest score are saved
    scores: dict[str, float]  # the scores that are shown; the first one is that of `score` (a loss: minus it)
    answers: Sequence[Any] = ()  # the answers that the score is computed from, if there are any


@dataclass(frozen=True)
class Graded:
    """An answer and the right one, in words."""

    answer: str
    probability: float  # of the answer
    truth: str  # the right answer
    of_truth: float  # the probability that the model gives to the right answer
    right: bool  # whether the answer counts as right


@dataclass(frozen=True)
class Missed:
    """A number that was predicted and the right one."""

    answer: float
    truth: float

    @property
    def distance(self) -> float:
        return abs(self.answer - self.truth)


@dataclass(frozen=True)
class ProbabilityTable:
    """The probabilities that a model gave to answers of which one is right, and which one was right."""

    shares: np.ndarray  # rows x answers; 0 where a row has fewer answers than others
    truth: np.ndarray  # rows, the number of the right answer; -1: it is none of these


class Task(PartLike, Protocol):
    """A recipe's `task`: one kind of downstream task.

    It says which columns it reads, how an example is laid out, how a pretrained recipe becomes one that is trained on
    the task, how scores become answers, and how answers are scored.
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes; () if answers are not classes."""

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns by which a file of this task is known; a file needs all names of one group."""

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """Special tokens that it puts into texts, each with the word that its vector starts from; {}: none."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the name of a file of this task may end, without the suffix of a compression."""

    def knows(self, path: Path, columns: Any) -> bool:
        """Whether a file without a named task is of this task. It has the columns, or a format without columns."""

    @property
    def head(self) -> str:
        """The name of the objective that starts with random weights in the adapted recipe; "" if there is none."""

    @property
    def texts(self) -> Literal[1, 2] | None:
        """The number of texts of an example; None: it is not known, or examples are no texts or pairs of texts."""

    @property
    def token(self) -> Literal["first", "last"] | None:
        """The token of a word that its tag is predicted from; None: it predicts no tags, or the user gave no value."""

    @property
    def predicts_next(self) -> bool:
        """Whether it may also learn to predict the next token. It then has `language`, the weight of this loss; None: the
        recipe's."""

    @property
    def epochs(self) -> float | None:
        """How many times the examples are read. None here and below: the user gave no value."""

    @property
    def rate(self) -> float | None:
        """The highest learning rate."""

    @property
    def warmup(self) -> float | None:
        """The share of the steps in which the rate rises."""

    @property
    def decay(self) -> float | None:
        """The weight decay."""

    @property
    def layer_decay(self) -> float | None:
        """The learning rate of a layer divided by that of the layer above it."""

    @property
    def trained(self) -> Any:
        """The training that made a run, with its number of `examples`; None: it is not trained yet, or not known."""

    @property
    def main_scores(self) -> tuple[str, ...]:
        """The names of the score that models are compared by, higher is better: the first of them that `score` returns."""

    @property
    def needs_dropout(self) -> bool:
        """Whether the user asked for dropout in the network while it is trained."""

    @property
    def compares(self) -> bool:
        """Whether the answer to an example depends on the other examples that are given with it."""

    @property
    def has_temperature(self) -> bool:
        """Whether its probabilities can be calibrated. It then has `temperature`, by which scores are divided."""

    @property
    def final_scale(self) -> tuple[float, float]:
        """What the output of the head is multiplied by, and what is then added, to get the scores of an answer."""

    @property
    def later(self) -> tuple[str, ...]:
        """The names of the values that may still be changed after training, because they only say how it answers."""

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Any], Counter[str]]:
        """The examples of a file, and the notes. If `labelled`, each example must have its correct answer."""

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        """How a file is read, in words that a user can check; None if it is obvious."""

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Any]:
        """Examples from texts, pairs of texts, or examples. `where`: the name of each one in error messages."""

    def learn(self, examples: Sequence[Any]) -> Task:
        """The task with the values that its training examples decide, such as the names of the labels."""

    def check(self, examples: Sequence[Any], reader: str, *, labelled: bool = True) -> None:
        """Refuse examples that do not fit the learned task. `reader`: the name of the model in error messages."""

    def recipe(self, base: Pretrained) -> Any:
        """The recipe of a pretrained model, changed for the task. Its `task` is this task with every value decided."""

    def sized(self, examples: int, recipe: Any) -> Task:
        """The task with the values that depend on the number of training examples, where the user gave none. `recipe`: that
        of the pretrained model."""

    def made(self, *, examples: int, seed: int, fresh: bool) -> Task:
        """The task of a run that was trained on this number of examples with this seed."""

    def hyperparameters(self, recipe: Any) -> Any:
        """How a model of this recipe is trained on the task."""

    def among_many(self, *, pairs: Any, lists: int | None) -> Task:
        """The learned task with the head that it has in a model of several tasks, where the user chose none. `pairs`: the
        answer network of classes of pairs; `lists`: how many passages of a query are compared."""

    def lay_out(self, examples: Sequence[Any], *, labelled: bool = True) -> Any:
        """The examples as the model reads them: a `Laid` of unmask.data.examples."""

    def baseline(self, examples: Sequence[Any]) -> dict[str, Any]:
        """What the first log record of a training says about these examples. `baseline`, if there is one, is a model that
        always gives one `label` (None: a random choice), with its score by name. `labels`: the names of the classes."""

    def answer(self, model: Reader, examples: Sequence[Any]) -> Answered:
        """The answers of an adapted model."""

    def score(self, model: Reader, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, Any]:
        """The scores of these answers. A score that is shown on a line without others is a float."""

    def judge(self, model: Reader, examples: Sequence[Any]) -> Judged:
        """How good a model is on a dev set, during training."""

    def graded(self, examples: Sequence[Any], answers: Sequence[Any]) -> Sequence[Graded]:
        """Each answer next to the right one of its example; () if answers have no probability, or are not right or wrong."""

    def probability_table(self, examples: Sequence[Any], answers: Sequence[Any]) -> ProbabilityTable | None:
        """The probabilities of these answers, for calibration; None if they have no probabilities."""

    def missed(self, examples: Sequence[Any], answers: Sequence[Any]) -> Sequence[Missed]:
        """Each number that was predicted next to the right one of its example; () if answers are not numbers."""

    def relevance(self, answer: Any) -> float | None:
        """How well a text answers a query, by the answer to the pair of both; None: the answer does not say it."""

    def kinds(self, examples: Sequence[Any]) -> Sequence[str]:
        """The kind of each example, such as its label. Folds get examples of all kinds."""

    def groups(self, examples: Sequence[Any]) -> Sequence[Sequence[int]]:
        """The numbers of the examples that belong together, such as the passages of a query or the questions about a text: all are in
        the same fold."""

    def notices(self, model: Reader, examples: Sequence[Any], dev: Sequence[Any], best: Judged | None) -> list[str]:
        """What a user should know after training. `best`: the dev scores of the saved weights; None without a dev set."""


@dataclass(frozen=True)
class LowRankRows:
    """A matrix of low rank that is added to some rows of a weight: scale x up x down."""

    rows: Sequence[int]
    height: int  # the number of all rows of the weight
    down: Tensor  # rank x inputs
    up: Tensor  # these rows x rank
    scale: float


class Tune(PartLike, Protocol):
    """A recipe's `tune`: which weights of a pretrained network are trained on a task, and how fast. None: all weights.

    It says what is added to the network, which parameters train, at which rates, and what is saved. `system`: the module
    that the recipe's system builds. `head`: the name of the task's new objective; "" if there is none.
    """

    @property
    def alone(self) -> bool:
        """Whether a run holds only what was trained, with the path and the fingerprint of its base."""

    @property
    def plain(self) -> bool:
        """Whether the tuned network has the modules of its base, and no others."""

    @property
    def still(self) -> bool:
        """Whether the network itself never trains. It then computes without dropout."""

    @property
    def cached(self) -> Literal["last", "all"] | None:
        """The layers whose vectors are computed once, before training; None: the network computes them at each step."""

    @property
    def turns(self) -> float:
        """The number of steps on texts without labels for each step on examples; 0: it does not learn from such texts."""

    def task(self, task: Any, recipe: Any) -> Any:
        """The task with the values of this way where the user gave none. `recipe`: that of the base. Refuses values of the
        task that have no effect or make no sense with this way."""

    def recipe(self, recipe: Any) -> Any:
        """The recipe of the task, changed for this way."""

    def put_in(self, system: Any) -> None:
        """Add the modules of this way to a network. Their weights are random."""

    def students(self, system: Any, recipe: Any) -> nn.Module | None:
        """What learns from texts without labels, with random weights: see `unmask.system.teacher_student`. It trains with the
        network and is not saved. None: there is none. `recipe`: that of the task."""

    def merge(self, system: Any) -> None:
        """Remove the modules of this way from a network that then computes the same."""

    def factors(self, system: Any) -> dict[str, list[LowRankRows]]:
        """The matrices of low rank that are added to weights, by the names of the weights; {}: there are none."""

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        """The names of the parameters that train in an epoch, counted from 1."""

    def rates(self, system: Any, head: str) -> dict[str, float | Curve]:
        """The learning rate of each parameter, as a share of the full rate that may change during training; 1 if it is not
        named."""

    def notices(self, system: Any, head: str, epochs: int) -> list[str]:
        """What a user should know before a training of this number of epochs."""


def rules(hide: Hide | tuple[Hide, ...]) -> tuple[Hide, ...]:
    """A recipe's `hide` as rules, in the order in which they are applied."""
    return hide if isinstance(hide, tuple) else (hide,)


def parts_in(value: Any, path: str = "") -> Iterator[tuple[str, PartLike]]:
    """Every part in a tree of parts, dicts and tuples, with its dotted name; the outermost first."""
    if dataclasses.is_dataclass(value):
        yield path, value  # type: ignore[misc]
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    items = enumerate(value) if isinstance(value, tuple) else value.items() if isinstance(value, dict) else ()
    for name, item in items:
        yield from parts_in(item, f"{path}.{name}" if path else str(name))


def gives_of(*values: Any) -> frozenset[str]:
    """What all parts in these trees give."""
    return frozenset(fact for value in values for _, part in parts_in(value) for fact in part.gives)


def needs_of(*values: Any) -> frozenset[str]:
    """What the parts in these trees need; of a need with alternatives, each of them."""
    needs = (need for value in values for _, part in parts_in(value) for need in part.needs)
    return frozenset(fact for need in needs for fact in need.alternatives)


def columns_of(*values: Any) -> frozenset[str]:
    """The names of the data columns that the parts in these trees need."""
    return frozenset(fact.partition(":")[2] for fact in needs_of(*values) if fact.startswith("column:"))
