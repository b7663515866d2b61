"""Small pretrained models with weights that are all different, to be adapted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

from tests.convert.parts import model_of, recipe_of, tokenizer_for
from unmask import recipes, text
from unmask.data.examples import Text
from unmask.infer import answer
from unmask.infer.model import Model
from unmask.text import Tokenizer

SHAPE = [f"system.backbone.{name}" for name in ("layers=2", "width=16", "heads=2", "feedforward=64", "length=48")]


def loud(head: torch.nn.Module) -> None:
    """Give a fresh head weights that tell its answers well apart: its own are near 0, and would hide mistakes."""
    torch.nn.init.normal_(head.out.weight, generator=torch.Generator().manual_seed(2))


def chances(model: Model, examples: list) -> list[np.ndarray]:
    """The probabilities of every answer to each example."""
    return [np.array(list(found.probabilities.values())) for found in answer(model, examples).answers]


def probabilities(model: Model, texts: list[Text]) -> np.ndarray:
    """Texts x labels."""
    return np.array(chances(model, texts))


def base_of(name: str, tokenizer: Tokenizer, folder: Path, *settings: str) -> Model:
    lengths = [f"schedule.{i}.length=48" for i in range(len(recipes.get(name).schedule))]
    recipe = recipes.get(name, size="tiny", settings=[*SHAPE, "system.backbone.dropout=0.0", *lengths, *settings])
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in system.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.3)
    return Model(system.eval(), recipe, tokenizer, folder)


def bases_in(folder: Path) -> Callable[[str], Model]:
    """A function that gives a small model of a recipe by its name, made once."""

    @cache
    def made(name: str) -> Model:
        recipe = recipe_of(name)
        of_bytes = isinstance(recipe.tokenizer, text.Bytes)
        tokens = text.train(text.Bytes(), ["a"]) if of_bytes else tokenizer_for(recipe)
        return model_of(recipe, tokens, folder / name)

    return made
