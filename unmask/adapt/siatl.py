"""SiATL: the network keeps learning its own language task, and is unfrozen in three steps (Chronopoulou et al. 2019).

The paper's: the sum of both losses, the weight of the next token that falls exponentially from 0.2 to 0.1, and the order in which
parts begin to train. The authors' code (model_configs/SCV2_aux_ft_gu.yaml, modules/trainer.py) has exp(-1.6) = 0.202 to exp(-2.3) =
0.100, which it reaches after 15 epochs; there the layers, with the output of the language model, begin in epoch 2, and the
embeddings in epoch 5 of at most 100. Ours: the weight falls over the whole training, the embeddings begin in epoch 3 because
trainings here are shorter, and AdamW trains all weights (there: Adam the new layers at 5e-4, averaged SGD the others). The new
layers are those of the task's head, not an LSTM with attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from unmask.adapt._way import Way, layer_groups, of_head, unless_given
from unmask.axes import Curve
from unmask.curves import Exponential
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.tasks._training import check_language

# With 3 epochs the embeddings hardly train: 8,000 examples of SST-2 gave 69.1% against 78.7% with 10 (docs/results.md).
EPOCHS: Final = 10.0


@dataclass(frozen=True)
class Siatl(Way):
    """Train the head first, then the layers too, then the embeddings too; and predict the next token besides the task."""

    # the epoch, counted from 1, in which the layers and the output of the language model begin to train
    layers: int = 2
    embeddings: int = 3  # the epoch in which the embeddings begin to train
    language: float | Curve = Exponential(
        first=0.2, last=0.1
    )  # the weight of predicting the next token; 0: not predicted

    def __post_init__(self) -> None:
        require(
            1 <= self.layers <= self.embeddings,
            "tune.layers and tune.embeddings are the epochs in which they begin to train, 1 or more and in this order, got "
            "{layers} and {embeddings}",
            layers=self.layers,
            embeddings=self.embeddings,
        )
        check_language(self.language)

    def task(self, task: Any, recipe: Recipe) -> Any:
        self.needs_head(task)
        given = task.language if task.predicts_next else None
        require(
            given is None,
            "language={given} is the weight of the next token, and --tune siatl has its own: set tune.language={given}",
            given=given,
        )
        require(
            self.language == 0 or task.predicts_next,
            "--tune siatl adds the loss of the next token to that of the task, and --task {task} cannot have it: set "
            "tune.language=0, or choose another way of tuning",
            task=type(task).__name__.lower(),
        )
        require(
            self.language == 0 or "future hidden" in recipe.see.gives,
            "--tune siatl trains the network to predict the next token besides the task, and a model of {name} does not "
            "read from left to right: set tune.language=0, or adapt a model such as gpt2",
            name=recipe.name,
        )
        return unless_given(task, language=self.language, epochs=max(recipe.adapt.epochs, EPOCHS))

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        top, *layers, below = layer_groups(system)
        found = [of_head(system, head)]
        found += [top, *layers] if epoch >= self.layers else []
        found += [below] if epoch >= self.embeddings else []
        return frozenset().union(*found)

    def notices(self, system: Any, head: str, epochs: int) -> list[str]:
        if epochs >= self.embeddings:
            return []
        return [
            f"{epochs} epochs end before the embeddings begin to train in epoch {self.embeddings}: set epochs={self.embeddings} "
            "or more, or a lower tune.embeddings"
        ]
