"""Copy the weights of a pretrained model into the model that is trained on a task."""

from __future__ import annotations

from typing import Any

from unmask.infer.model import Model
from unmask.system import SENTENCE

_POOLER = "dense."  # the tensors of the layer before a head's output


def inherit(system: Any, base: Model, new: str) -> None:
    """Copy the backbone and all objectives except the `new` one. The new one gets the pooler of the sentence objective."""
    before = base.system.backbone.state_dict()  # of which a task may keep only the encoder
    system.backbone.load_state_dict({name: before[name] for name in system.backbone.state_dict()})
    for kept in system.predict.keys() - {new}:
        system.predict[kept].load_state_dict(base.system.predict[kept].state_dict())
    if new and SENTENCE in base.system.predict:
        before = base.system.predict[SENTENCE].state_dict()
        pooler = {name: tensor for name, tensor in before.items() if name.startswith(_POOLER)}
        shapes = {name: tensor.shape for name, tensor in system.predict[new].state_dict().items()}
        if all(shapes.get(name) == tensor.shape for name, tensor in pooler.items()):
            system.predict[new].load_state_dict(pooler, strict=False)
