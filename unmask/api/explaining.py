"""explain: what a recipe does with a text; measure: what it does with many rows of prepared data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unmask import explanation, fonts, text
from unmask.api.choose_recipe import named, of_run
from unmask.api.paths import Paths, listed
from unmask.errors import require
from unmask.explanation.picture import draw
from unmask.explanation.statistics import Statistics
from unmask.explanation.statistics import measure as measure_rows
from unmask.progress import Tell, tell_notes, tell_notice
from unmask.recipe import MAIN, Recipe


def explain(
    recipe: str | Recipe, sentence: str, *, size: str | None = None, variant: str | None = None,
    settings: Sequence[str] = (), track: str | None = None, tokenizer: str | Path | None = None, lexicon: Paths = (),
    stage: int | None = None, seed: int = 0, visit: int = 0, picture: str | Path | None = None,
    font: str | Path | None = None, recipe_file: str | Path | None = None, tell: Tell = None,
) -> explanation.Explanation:  # fmt: skip
    """What a track of a recipe, by default main, hides, sees and predicts in a text; `stage` counts from 1, none is the last.

    `recipe`: a name, a .py file such as "./mine.py", a run folder, whose tokenizer is used, or a Recipe. `recipe_file`: the
    .py file of a run's recipe, if the run uses parts of it. `tokenizer`: by default a small one is trained. `picture`: a
    .png file to draw into; `font`: a font file for what the usual fonts cannot draw. `tell`: a function for notices;
    without one they are warnings."""
    require(font is None or picture is not None, "--font is for a picture: give --picture too, or leave --font out")
    chosen, own, notices = _recipe(recipe, size, variant, settings, recipe_file)
    file = tokenizer if tokenizer is not None else own
    found = explanation.explain(
        chosen, sentence, track=track or MAIN, tokenizer=text.Tokenizer.load(file) if file is not None else None,
        lexicon=text.Lexicon.load(listed(lexicon)) if lexicon else None, stage=stage, seed=seed, visit=visit,
    )  # fmt: skip
    lacking = draw(found, picture, font=font) if picture is not None else ""
    for notice in (*notices, *([fonts.notice(lacking)] if lacking else [])):
        tell_notice(notice, tell)
    return found


def measure(
    recipe: str | Recipe, data: str | Path, *, size: str | None = None, variant: str | None = None,
    settings: Sequence[str] = (), track: str | None = None, stage: int | None = None, seed: int = 0, visit: int = 0,
    recipe_file: str | Path | None = None, tell: Tell = None,
) -> Statistics:  # fmt: skip
    """What is hidden in many rows of prepared data, next to what the recipe asks for. `track`: none for all tracks.

    `recipe`, `recipe_file`, `stage`, `tell`: as for `explain`."""
    chosen, _, notices = _recipe(recipe, size, variant, settings, recipe_file)
    measured = measure_rows(chosen, data, track=track, stage=stage, seed=seed, visit=visit)
    for notice in notices:
        tell_notice(notice, tell)
    tell_notes(measured.notes, tell)
    return measured


def _recipe(
    recipe: str | Recipe, size: str | None, variant: str | None, settings: Sequence[str], recipe_file: str | Path | None
) -> tuple[Recipe, Path | None, tuple[str, ...]]:
    """The recipe, the tokenizer of its run if it is that of a run, and notices."""
    found = of_run(recipe, settings, recipe_file)
    if found is None:
        return named(recipe, size=size, variant=variant, settings=settings), None, ()
    require(not size and not variant, "the recipe comes from {recipe}: leave --size and --variant out", recipe=recipe)
    return found.recipe, found.tokenizer, found.notices
