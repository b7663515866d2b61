"""The facts about a recipe's parts that import and export need, one function for each fact."""

from __future__ import annotations

from typing import Any

from unmask.axes import Pattern
from unmask.backbone import Learned, Sinusoidal
from unmask.convert.exported_values import parts
from unmask.hide import Masked, Next, Rewrite
from unmask.predict import Label, Tokens
from unmask.recipe import MAIN, Recipe


def reading_view(recipe: Recipe) -> Any:
    """The `see` part that a trained model reads with."""
    return recipe.see.reading


def sees(recipe: Recipe) -> Pattern:
    """Which tokens a token of a trained model sees."""
    pattern: Pattern = reading_view(recipe).pattern
    return pattern


def writes_second_text(recipe: Recipe) -> bool:
    """Whether the model reads a whole text and writes a second text after it."""
    main = recipe.all_tracks()[MAIN]
    return "prefix" in recipe.see.gives or (not main.share and "second" in recipe.writes)


def predicted_token(hide: Any) -> str | None:
    """The token that is predicted at a position: its "own", the "next", one that is "written" by a decoder, or None for
    another."""
    if "decoder rows" in hide.gives:
        return "written"
    return "own" if isinstance(hide, Masked) else "next" if isinstance(hide, Next) else None


def predicts_from_before(recipe: Recipe) -> str | None:
    """The setting by which hidden tokens are predicted from the place before them; None if they are not."""
    hides = [name for name, part in parts(recipe) if name.endswith("hide") and "one earlier" in part.gives]
    return f"{hides[0]}.at" if hides else None


HIDE_FOR = {
    "own": Masked.__name__,
    "next": Next.__name__,
    "written": Rewrite.__name__,
}  # the setting of `hide` for each answer of `predicted_token`


def further_target(head: Tokens) -> str | None:
    """The setting with which a head predicts a token after the next one; None if it does not."""
    return f"target={head.target}" if head.target != "tokens" else None


def reads_decoder(head: Any) -> bool:
    """Whether a head reads what a decoder makes of the layers."""
    return isinstance(head, Tokens) and head.layer is None


def class_names(recipe: Recipe, head: Label) -> tuple[str, ...]:
    """The names of the classes that a head distinguishes."""
    known = () if recipe.task is None else recipe.task.labels
    return known or tuple(f"LABEL_{i}" for i in range(head.classes))


def positions(backbone: Any) -> str:
    """The kind of absolute positions, in words."""
    return {Learned: "learned", Sinusoidal: "sinusoidal"}.get(type(backbone.positions), "such")


def repeats_positions(backbone: Any) -> bool:
    """Whether positions are added before every layer."""
    return isinstance(backbone.positions, Learned | Sinusoidal) and backbone.positions.every
