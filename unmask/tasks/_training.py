"""The training settings that every task has, and their checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from unmask import axes
from unmask.axes import Curve
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.tasks._rows import ROWS, described_rows, has_rows, read_rows

ENOUGH_STEPS = 300  # fewer steps are too few to train a new head well
MOST_EPOCHS = 20  # a training of few examples has at most


@dataclass(frozen=True)
class Hyperparameters:
    """How a model is trained on a task. All values are set."""

    epochs: float  # how many times the examples are read
    examples: int  # examples per step
    rate: float  # highest learning rate
    warmup: float  # share of the steps
    decay: float  # weight decay
    layer_decay: float  # learning rate of a layer divided by that of the layer above it
    length: int  # longest input in tokens
    patience: int  # epochs without a better dev score after which training ends; 0: it does not end early


@dataclass(frozen=True)
class Trained(axes.Part):
    """A record of the training that made a run."""

    examples: int  # number of training examples
    seed: int  # the seed of all random choices
    fresh: bool = False  # whether training started from random weights


@dataclass(frozen=True)
class Training(axes.Part):
    """How long a model is trained on the examples of a task, and how fast."""

    epochs: float | None = None  # how many times the examples are read; none: the recipe's value
    examples: int = 32  # examples per step
    rate: float | None = None  # highest learning rate; none: the recipe's value, times 768 / width
    warmup: float | None = None  # share of the steps; none: the recipe's value
    decay: float | None = None  # weight decay; none: the recipe's value
    # learning rate of a layer divided by that of the layer above it; none: the recipe's value
    layer_decay: float | None = None
    length: int | None = None  # longest input in tokens; none: as long as the model can read
    patience: int = 0  # end after this many epochs without a better score on the dev set; 0: train all epochs
    trained: Trained | None = None  # the training that made the run; none: not trained yet, or not known

    def __post_init__(self) -> None:
        require(self.epochs is None or self.epochs > 0, "epochs must be over 0, got {epochs}", epochs=self.epochs)
        require(self.examples >= 1, "examples must be 1 or more, got {examples}", examples=self.examples)
        require(self.rate is None or self.rate > 0, "rate must be over 0, got {rate}", rate=self.rate)
        require(
            self.warmup is None or 0 <= self.warmup < 1,
            "warmup must be in [0, 1), got {warmup}: it is a share of all steps",
            warmup=self.warmup,
        )
        require(self.decay is None or self.decay >= 0, "decay must be 0 or more, got {decay}", decay=self.decay)
        require(
            self.layer_decay is None or 0 < self.layer_decay <= 1,
            "layer_decay must be in (0, 1], got {layer_decay}: 1 gives all layers the same rate",
            layer_decay=self.layer_decay,
        )
        require(
            self.patience >= 0,
            "patience must be 1 epoch or more, or 0 to train all epochs; got {patience}",
            patience=self.patience,
        )
        require(
            self.length is None or self.length >= 8, "length must be 8 tokens or more, got {length}", length=self.length
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return ()

    @property
    def special_tokens(self) -> dict[str, str]:
        return {}

    @property
    def later(self) -> tuple[str, ...]:
        return ()

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ROWS

    @property
    def texts(self) -> Literal[1, 2] | None:
        return None

    @property
    def token(self) -> Literal["first", "last"] | None:
        return None

    @property
    def predicts_next(self) -> bool:
        return False

    @property
    def needs_dropout(self) -> bool:
        return False

    @property
    def compares(self) -> bool:
        return False

    @property
    def has_temperature(self) -> bool:
        return False

    @property
    def final_scale(self) -> tuple[float, float]:
        return 1.0, 0.0

    def knows(self, path: Path, columns: Any) -> bool:
        if not has_rows(path):
            return False
        names = set(next(read_rows(path), (0, {}))[1])
        return any(set(group) <= names for group in self.columns)

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return described_rows(path)

    def hyperparameters(self, recipe: Recipe) -> Hyperparameters:
        """The values of the task. Where the task has none, the values of the model's recipe."""
        usual = recipe.adapt
        return Hyperparameters(
            epochs=usual.epochs if self.epochs is None else self.epochs,
            examples=self.examples,
            rate=usual.rate * 768 / recipe.system.backbone.width if self.rate is None else self.rate,
            warmup=usual.warmup if self.warmup is None else self.warmup,
            decay=usual.decay if self.decay is None else self.decay,
            layer_decay=usual.layer_decay if self.layer_decay is None else self.layer_decay,
            length=recipe.longest if self.length is None else self.length,
            patience=self.patience,
        )

    def sized(self, examples: int, recipe: Recipe) -> Self:
        """The task with more epochs than the recipe's if there are few examples, unless the user gave a number of epochs.

        Mosbach et al. (2021): on small data sets, training is stable if it has enough steps."""
        if self.epochs is not None:
            return self
        return replace(self, epochs=max(recipe.adapt.epochs, enough_epochs(examples, self.examples)))

    def made(self, *, examples: int, seed: int, fresh: bool) -> Self:
        """The task with a record of its training: how many examples, which seed, and whether from random weights."""
        return replace(self, trained=Trained(examples, seed, fresh))

    def among_many(self, *, pairs: Any, lists: int | None) -> Self:
        return self

    def graded(self, examples: Sequence[Any], answers: Sequence[Any]) -> Sequence[axes.Graded]:
        return ()

    def probability_table(self, examples: Sequence[Any], answers: Sequence[Any]) -> axes.ProbabilityTable | None:
        return None

    def missed(self, examples: Sequence[Any], answers: Sequence[Any]) -> Sequence[axes.Missed]:
        return ()

    def relevance(self, answer: Any) -> float | None:
        return None

    def kinds(self, examples: Sequence[Any]) -> Sequence[str]:
        return [""] * len(examples)

    def groups(self, examples: Sequence[Any]) -> Sequence[Sequence[int]]:
        return [[number] for number in range(len(examples))]

    def decided(self, recipe: Recipe, **changes: Any) -> Self:
        """The task with all hyperparameters set, and with these changes."""
        return replace(self, **asdict(self.hyperparameters(recipe)), **changes)


def enough_epochs(examples: float, per_step: int) -> float:
    """How often so many examples are read in ENOUGH_STEPS steps; MOST_EPOCHS times if it would be more often."""
    return float(min(MOST_EPOCHS, math.ceil(ENOUGH_STEPS * min(per_step, examples) / examples)))


def check_dropout(dropout: float) -> None:
    require(0 <= dropout < 1, "dropout must be in [0, 1), got {dropout}", dropout=dropout)


def check_language(language: float | Curve | None) -> None:
    """A weight is a number, or a curve that gives a number for every share of the steps."""
    number = isinstance(language, int | float) and language >= 0
    require(
        language is None or number or hasattr(language, "at"),
        (
            "language must be 0 or more, or a curve, got {language}: with 0.5 the loss of the next token counts "
            "half as much as the loss of the task"
        ),
        language=language,
    )


def check_stride(stride: float) -> None:
    require(
        0 < stride <= 1,
        "stride must be in (0, 1], got {stride}: with 0.5, windows of a long text advance by half a window",
        stride=stride,
    )
