"""Recipe facts: what conversion must know of a recipe's parts, one function for each question."""

from __future__ import annotations

from typing import Any

from unmask.axes import Pattern
from unmask.hide import Mask, Next
from unmask.predict import Label, Tokens
from unmask.recipe import Recipe


def reading_view(recipe: Recipe) -> Any:
    """The `see` that a finished model reads with."""
    see: Any = recipe.see
    return see.serving


def sees(recipe: Recipe) -> Pattern:
    """What a token of a finished model sees."""
    pattern: Pattern = reading_view(recipe).pattern
    return pattern


def writes_second_text(recipe: Recipe) -> bool:
    """Whether it reads one text whole and writes a second one after it."""
    see: Any = recipe.see
    return bool(see == see.writing)


def trained_to_read(recipe: Recipe) -> bool:
    """Whether some rows of the training were read in the way that a finished model reads."""
    return getattr(recipe.see, "everything", 1) > 0


def predicted_token(hide: Any) -> str | None:
    """The token that is predicted at a position: its "own", the "next", or None for another."""
    if isinstance(hide, Mask):
        return "own"
    return "next" if isinstance(hide, Next) else None


HIDE_FOR = {"own": Mask.__name__, "next": Next.__name__}  # the setting of `hide` for each answer of `predicted_token`


def further_target(head: Tokens) -> str | None:
    """The setting by which a head predicts a token beyond the next one; None if it does not."""
    return f"ahead={head.ahead}" if head.ahead != 1 else None


def class_names(recipe: Recipe, head: Label) -> tuple[str, ...]:
    """The names of the classes that a head distinguishes."""
    return head.names or tuple(f"LABEL_{i}" for i in range(head.classes))


def positions(backbone: Any) -> str:
    """The kind of absolute positions: "learned", "sinusoidal" ..."""
    return str(backbone.positions)


def repeats_positions(backbone: Any) -> bool:
    """Whether positions are added before every layer."""
    return bool(backbone.every)
