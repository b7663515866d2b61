"""Many: how one model is trained on several tasks together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from unmask import curves
from unmask.axes import Curve, Optimise, Part
from unmask.errors import require
from unmask.predict import AnswerSteps
from unmask.recipe import Recipe, Stage
from unmask.tasks._training import Hyperparameters, enough_epochs
from unmask.train import Adamax, AdamW

EPOCHS = 5.0
RATE = 5e-5  # at width 768


@dataclass(frozen=True)
class Many(Part):
    """How a model learns several tasks together. The usual values are those of MT-DNN (Liu et al. 2019, arXiv:1901.11504)."""

    # how many times the examples of all tasks are read; none: 5, or as often as tasks with few examples need (`sized`)
    epochs: float | None = None
    examples: int = 32  # examples per step; all are of one task
    rate: float | None = None  # highest learning rate; none: 5e-5 at width 768, in inverse proportion to the width
    warmup: float = 0.1  # share of the steps
    decay: float = 0.0  # weight decay
    length: int | None = None  # longest input in tokens; none: as long as the model can read
    patience: int = 0  # end after so many epochs without a better mean score on the dev sets; 0: train all epochs
    optimiser: Literal["adamax", "adamw"] = "adamax"
    # the steps of a task are in proportion to its number of batches to this power. 1: each batch of an epoch is read once. 0: all
    # tasks alike. Linear(first=1.0, last=0.2): annealed from epoch to epoch (Stickland and Murray 2019)
    power: float | Curve = 1.0
    # the head for labels of pairs: a stochastic answer network; none: one output layer, as for single texts
    pairs: AnswerSteps | None = AnswerSteps()
    # rankings: which of so many passages of a query is the relevant one; none: of each passage, whether it is relevant
    lists: int | None = 2

    def __post_init__(self) -> None:
        require(self.epochs is None or self.epochs > 0, "epochs must be over 0, got {epochs}", epochs=self.epochs)
        require(self.examples >= 1, "examples must be 1 or more, got {examples}", examples=self.examples)
        require(self.rate is None or self.rate > 0, "rate must be over 0, got {rate}", rate=self.rate)
        require(0 <= self.warmup < 1, "warmup must be in [0, 1), got {warmup}: it is a share of all steps", warmup=self.warmup)  # fmt: skip
        require(self.decay >= 0, "decay must be 0 or more, got {decay}", decay=self.decay)
        require(self.length is None or self.length >= 8, "length must be 8 tokens or more, got {length}", length=self.length)  # fmt: skip
        require(self.patience >= 0, "patience must be 0 or more, got {patience}", patience=self.patience)
        require(
            curves.least(self.power) >= 0,
            "power must be 0 or more, got {power}: 1 is in proportion to the size of a task, 0 is the same for all",
            power=self.power,
        )

    def sized(self, examples: Sequence[int]) -> Many:
        """With more epochs if the tasks have few examples (`examples`: of each), unless the user gave a number. A task has as many
        steps, on average, as it would have alone (`Training.sized`)."""
        if self.epochs is not None:
            return self
        return replace(self, epochs=max(EPOCHS, enough_epochs(fmean(examples), self.examples)))

    def hyperparameters(self, recipe: Recipe) -> Hyperparameters:
        """All values for a model of this recipe."""
        return Hyperparameters(
            epochs=EPOCHS if self.epochs is None else self.epochs,
            examples=self.examples,
            rate=RATE * 768 / recipe.system.backbone.width if self.rate is None else self.rate,
            warmup=self.warmup,
            decay=self.decay,
            layer_decay=1.0,
            length=recipe.longest if self.length is None else self.length,
            patience=self.patience,
        )

    def optimise(self, plan: Hyperparameters) -> Optimise:
        kind = Adamax if self.optimiser == "adamax" else AdamW
        return kind(rate=plan.rate, decay=plan.decay, warmup=plan.warmup)

    def schedule(self, batches: Mapping[str, int], plan: Hyperparameters) -> tuple[Stage, ...]:
        """The stages: one, or one for each epoch if the turns of the tasks change. `batches`: of an epoch of each task."""
        count = 1 if isinstance(self.power, int | float) else max(1, round(plan.epochs))
        powers = [curves.at(self.power, number / max(1, count - 1)) for number in range(count)]
        turns = [{name: float(number) ** power for name, number in batches.items()} for power in powers]
        return tuple(Stage(share=1 / count, rows=plan.examples, length=plan.length, turns=turn) for turn in turns)
