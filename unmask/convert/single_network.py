"""Take the generator or the discriminator out of a pair, as a single network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from torch import nn

from unmask.backbone import Transformer
from unmask.data import FromTask
from unmask.errors import require
from unmask.infer.model import Model
from unmask.recipe import Recipe
from unmask.system import GeneratorDiscriminator, Single
from unmask.system.generator_discriminator import generator_of


def single_module(system: Any, *, generator: bool = False) -> nn.Module:
    """One network of the system with its heads, with the names of a single network. The weights are shared, not copied."""
    body, heads = (system.generator, {"tokens": system.fill}) if generator else (system.backbone, system.predict)
    return nn.ModuleDict({"backbone": body, "predict": nn.ModuleDict(heads)})


def single_recipe(recipe: Recipe, *, generator: bool = False) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe of one network, and the networks of the run that are not in it."""
    system = recipe.system
    if not isinstance(system, GeneratorDiscriminator):
        require(
            not generator,
            "the run has no generator, {name} trained a single network: leave --generator out",
            name=recipe.name,
        )
        return recipe, ()
    if not generator:
        return recipe.replace(system=Single(backbone=system.backbone)), ("generator",)
    single = recipe.replace(
        system=Single(backbone=_generator(system)),
        predict={"tokens": system.fill},
        arrange=FromTask(),  # the sentence task is the discriminator's
    )
    return single, ("discriminator",)


def single_model(model: Model, *, generator: bool) -> tuple[Model, tuple[str, ...]]:
    """The model of one network, and the networks of the run that are not in it."""
    recipe, others = single_recipe(model.recipe, generator=generator)
    if not others:
        return model, ()
    return replace(model, system=single_module(model.system, generator=generator), recipe=recipe), others


def _generator(system: GeneratorDiscriminator) -> Transformer:
    """The settings of the generator as it was built."""
    made, backbone = generator_of(system), cast(Transformer, system.backbone)
    require(
        not system.shared or made.epsilon == backbone.epsilon,
        (
            "a generator that shares its embeddings has their epsilon, got {epsilon} and {epsilon_2}: train with "
            "the same epsilon in both"
        ),
        epsilon=made.epsilon,
        epsilon_2=backbone.epsilon,
    )
    return made
