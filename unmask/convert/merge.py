"""Merge what a way of tuning added to a network into its weights."""

from __future__ import annotations

import copy
from dataclasses import replace

from unmask.infer.model import Model


def merged_model(model: Model) -> Model:
    """A model that computes the same with a plain network. The given model stays as it is."""
    tune = model.recipe.tune
    if tune is None:
        return model
    system = copy.deepcopy(model.system)
    tune.merge(system)
    return replace(model, system=system, recipe=model.recipe.replace(tune=None))
