"""Copy the weights of a pretrained model into the model that is trained on a task."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import Tensor

from unmask.infer.model import Model
from unmask.recipe import Recipe
from unmask.system import SENTENCE

_POOLER = "dense."  # the tensors of the layer before a head's output


def inherit(system: Any, base: Model, new: Collection[str]) -> None:
    """Copy the backbone and all objectives except the `new` ones. These get the pooler of the sentence objective; of a model
    with several tasks, that of the task with the most examples."""
    before = base.system.backbone.state_dict()  # of which a task may keep only the encoder
    system.backbone.load_state_dict({name: before[name] for name in system.backbone.state_dict()})
    for kept in system.predict.keys() - set(new):
        system.predict[kept].load_state_dict(base.system.predict[kept].state_dict())
    pooler = _pooler(base)
    for head in (system.predict[name] for name in new):
        shapes = {name: tensor.shape for name, tensor in head.state_dict().items()}
        if all(shapes.get(name) == tensor.shape for name, tensor in pooler.items()):
            head.load_state_dict(pooler, strict=False)


def _pooler(base: Model) -> dict[str, Tensor]:
    """The tensors of the pooler that new heads start from; {}: the model has none."""
    heads = [SENTENCE, *sorted(base.recipe.tasks, key=lambda name: -_examples(base.recipe, name))]
    for name in (one for one in heads if one in base.system.predict):
        tensors = base.system.predict[name].state_dict()
        found = {key: tensor for key, tensor in tensors.items() if key.startswith(_POOLER)}
        if found:
            return found
    return {}


def _examples(recipe: Recipe, name: str) -> int:
    """The number of examples that a task was trained on; 0 if it is not known."""
    trained = recipe.tasks[name].trained
    return 0 if trained is None else int(trained.examples)
