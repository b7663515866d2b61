"""Explanation: one text through every step of the house, with the very parts that train, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unmask import recipes, see, system
from unmask.errors import require
from unmask.explanation import extract
from unmask.explanation.hidden_units import make
from unmask.explanation.records import Explanation, to_json
from unmask.explanation.text_row import first_row, small_tokenizer
from unmask.recipe import Recipe
from unmask.text import Bytes, Lexicon, Tokenizer
from unmask.text.lexicon import LEVELS

__all__ = ["Explanation", "explain", "staged", "to_json"]


def explain(
    recipe: Recipe,
    text: str,
    *,
    tokenizer: Tokenizer | None = None,
    lexicon: Lexicon | None = None,
    stage: int | None = None,
    seed: int = 0,
    visit: int = 0,
) -> Explanation:
    """Take a text through the house. Blank lines in it separate documents; `stage` counts from 1, none is the last."""
    require(visit >= 0, f"visit must be 0 or more, got {visit}")
    require(bool(text.strip()), "there is no text to explain: give a sentence or more")
    number, hide = staged(recipe, stage)
    given, tokenizer = tokenizer, tokenizer or small_tokenizer(recipe.tokenizer, text)
    system.check(recipe, tokenizer.vocabulary)
    notes = [_about_tokenizer(recipe, given, tokenizer), *_about_lexicon(recipe, hide, lexicon)]
    now, done = recipe.schedule[number - 1], sum(before.share for before in recipe.schedule[: number - 1])
    batch, more = first_row(recipe, text, tokenizer, lexicon=lexicon, length=now.length, seed=seed, visit=visit)
    made = make(recipe, hide, batch, tokenizer.vocabulary, seed)
    batch = made.batch
    drawn, found = tuple(extract.drawn(recipe, hide, made)), tuple(extract.found(batch))
    units = tuple(extract.hidden_units(made, tokenizer, found, drawn))
    targets = tuple(extract.targets(recipe, now, batch, tokenizer))
    tokens = tuple(extract.tokens(made, tokenizer, units, targets))
    seen = see.visible(batch)[0, : len(tokens), : len(tokens)].tolist()
    return Explanation(
        recipe=recipe.name,
        size=recipe.size,
        variant=recipe.variant,
        idea=next((entry.idea for entry in recipes.entries() if entry.name == recipe.name), ""),
        stage=number,
        stages=len(recipe.schedule),
        seed=seed,
        visit=visit,
        choices=tuple(extract.choices(recipe, now, hide)),
        drawn=drawn,
        tokens=tokens,
        visible=tuple(map(tuple, seen)),
        found=found,
        units=units,
        targets=targets,
        questions=tuple(extract.questions(recipe, now, batch, done)),
        answers=tuple(extract.answers(recipe, batch)),
        classes=recipe.arrange.classes,  # type: ignore[attr-defined]
        notes=(*notes, *more, *_about_network(recipe)),
    )


def _about_network(recipe: Recipe) -> Iterator[str]:
    """What the matrix does not show."""
    memory = recipe.system.backbone.memory  # type: ignore[attr-defined]
    if memory:
        yield f"every token also sees what is remembered of the rows before, up to {memory} tokens"
    if system.second_stream(recipe):
        yield (
            "the matrix shows the stream that reads the tokens; what is predicted comes from a second one, which sees what "
            "the token at its place sees, but not the token itself"
        )


def staged(recipe: Recipe, stage: int | None) -> tuple[int, Any]:
    """The number of a stage, counted from 1, and what it hides; none is the last."""
    count = len(recipe.schedule)
    number = count if stage is None else stage
    known = "one stage" if count == 1 else f"stages 1 to {count}"
    require(1 <= number <= count, f"{recipe.name} has {known}, got {stage}: leave it out for the last")
    return number, system.hides(recipe)[number - 1]


def _about_tokenizer(recipe: Recipe, given: Tokenizer | None, used: Tokenizer) -> str:
    size = f"of {used.vocabulary.size:,} tokens"
    if given is not None:
        return f"tokenizer: the one given, {size}"
    trained = "" if isinstance(recipe.tokenizer, Bytes) else ", trained on this text and on Python's documentation"
    return f"tokenizer: a {type(recipe.tokenizer).__name__} {size}{trained}"


def _about_lexicon(recipe: Recipe, hide: Any, lexicon: Lexicon | None) -> Iterator[str]:
    """Refuse a lexicon that has no effect; say what is hidden where there is none."""
    require(
        lexicon is None or any(map(_reads_lexicon, system.hides(recipe))),
        f"{recipe.name} hides no phrases and no entities, so a lexicon has no effect: leave it out",
    )
    if lexicon is None and _reads_lexicon(hide):
        yield (
            "no lexicon was given, so words stand for phrases and entities: give one with --lexicon FILE, a line for "
            "each entry: the entry, a tab, and phrase or entity"
        )


def _reads_lexicon(hide: Any) -> bool:
    return hasattr(hide, "units") and bool(set(hide.units.columns) & set(LEVELS))
