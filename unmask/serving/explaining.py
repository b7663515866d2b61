"""Our route /explain: what a recipe, or the recipe of a model, hides, sees and predicts in a text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from unmask import explanation, recipes
from unmask.errors import require, unknown
from unmask.recipe import MAIN, Recipe
from unmask.serving.call import Call, Route
from unmask.settings import override
from unmask.text import Tokenizer

LONGEST = 4_000  # characters of a text that is explained: the answer grows with the square of its tokens
MOST = 4_096  # the largest number in a setting: memory grows with some of them


@dataclass(frozen=True)
class Explain:
    """The body of /explain: a text, and a recipe or a model."""

    text: str
    recipe: str | None = None
    model: str | None = None
    size: str | None = None
    variant: str | None = None
    settings: tuple[str, ...] = ()
    track: str | None = None
    stage: int | None = None
    seed: int = 0
    visit: int = 0

    def __post_init__(self) -> None:
        require((self.recipe is None) != (self.model is None), "give a recipe or a model: one of the two")
        require(
            self.model is None or (self.size is None and self.variant is None),
            "the recipe comes from the model: leave size and variant out",
        )
        require(
            len(self.text) <= LONGEST,
            "a text that is explained may have {most:,} characters, got {got:,}",
            most=LONGEST,
            got=len(self.text),
        )
        require(self.seed >= 0 and self.visit >= 0, "seed and visit must be 0 or more")


async def explain(call: Call) -> Any:
    """What a recipe hides, sees and predicts in a text, as `unmask explain --json` gives it. No file is read."""
    body: Explain = call.body
    recipe, tokenizer = _chosen(call, body)

    def run() -> Any:
        changed = override(recipe, body.settings, most=MOST)
        found = explanation.explain(
            changed, body.text, track=body.track or MAIN, tokenizer=tokenizer, stage=body.stage, seed=body.seed,
            visit=body.visit,
        )  # fmt: skip
        return found.as_json()

    return await asyncio.to_thread(run)


def _chosen(call: Call, body: Explain) -> tuple[Recipe, Tokenizer | None]:
    """The recipe, and the tokenizer of the model if it is that of a model."""
    if body.model is not None:
        model = call.service.models.get(body.model).model
        return model.recipe, model.tokenizer
    if body.recipe not in recipes.names():  # any other word could be a path
        raise unknown("recipe", str(body.recipe), recipes.names())
    return recipes.get(body.recipe, size=body.size or "base", variant=body.variant or "paper"), None


ROUTES = (Route("/explain", explain, "What a recipe hides, sees and predicts in a text", Explain),)
