"""Alone: of a generator and its discriminator, the one or the other as a network of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from torch import nn

from unmask.backbone import Transformer
from unmask.data import FromTask
from unmask.errors import require
from unmask.infer.model import Model
from unmask.system import GeneratorDiscriminator, Single
from unmask.system.generator_discriminator import generator_of


def network(system: Any, *, generator: bool = False) -> nn.Module:
    """A network of the system with its heads, under the names that a single one has; the weights are the same."""
    body, heads = (system.generator, {"tokens": system.fill}) if generator else (system.backbone, system.predict)
    return nn.ModuleDict({"backbone": body, "predict": nn.ModuleDict(heads)})


def model(both: Model, *, generator: bool) -> tuple[Model, tuple[str, ...]]:
    """The model of one network, and what of the run is not in it."""
    spec, recipe = both.recipe.system, both.recipe
    if not isinstance(spec, GeneratorDiscriminator):
        require(
            not generator,
            f"{both.folder} has no generator, {recipe.name} trained a single network: leave --generator out",
        )
        return both, ()
    body = network(both.system, generator=generator)
    if not generator:
        return replace(both, system=body, recipe=recipe.replace(system=Single(backbone=spec.backbone))), ("generator",)
    single = recipe.replace(
        system=Single(backbone=_generator(spec)),
        predict={"tokens": spec.fill},
        arrange=FromTask(),  # the sentence task is the discriminator's
    )
    return replace(both, system=body, recipe=single), ("discriminator",)


def _generator(spec: GeneratorDiscriminator) -> Transformer:
    """The generator as it was built."""
    made, backbone = generator_of(spec), cast(Transformer, spec.backbone)
    require(
        not spec.shared or made.epsilon == backbone.epsilon,
        f"a generator that shares its embeddings has their epsilon, got {made.epsilon} and {backbone.epsilon}: "
        "train with those alike",
    )
    return made
