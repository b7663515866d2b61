"""The verb that shows what a recipe does with a text, or measures what it does with many: explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask import screen
from unmask.cli import output
from unmask.cli.options import Font, Json, OwnRecipe, Seed, Settings
from unmask.cli.program import verb
from unmask.errors import UserError

if TYPE_CHECKING:
    from unmask.recipe import Recipe


@verb('unmask explain bert "The doctor examined the patient." --picture bert.png')
def explain(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, a .py file with a recipe, or a run folder.")],
    text: Annotated[str | None, typer.Argument(help="Any text; a blank line separates documents.")] = None,
    size: Annotated[str | None, typer.Option(help="tiny, mini, small, medium, base (the default) or large.")] = None,
    variant: Annotated[str | None, typer.Option(help="paper (the default), or another that the recipe names.")] = None,
    settings: Settings = [],  # noqa: B006
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json; by default a small one is trained.")] = None,
    lexicon: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="Phrases and entities, for recipes that hide them; may be given several times."
        ),
    ] = [],  # noqa: B006
    stage: Annotated[
        int | None, typer.Option(help="Which stage of the schedule, counted from 1; by default the last.")
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Which track, for recipes with several; by default main, with --statistics all."
        ),
    ] = None,
    visit: Annotated[
        int, typer.Option(help="Which reading of the text, counted from 0: each hides something else.")
    ] = 0,
    picture: Annotated[Path | None, typer.Option(help="Also draw it into this .png file.")] = None,
    font: Font = None,
    statistics: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Instead of a text: what is hidden in many rows of data made by 'unmask prepare'."
        ),
    ] = None,
    recipe_file: OwnRecipe = None,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Show what a recipe does with a text: its tokens, what is hidden, who sees whom, what is predicted."""
    from unmask import api, explanation
    from unmask.recipe import MAIN
    from unmask.run import RECIPE, TOKENIZER

    run = Path(recipe) if (Path(recipe) / RECIPE).is_file() else None
    if run is None and recipe_file is not None:
        raise UserError(f"--recipe is for a run folder, and {recipe} is not one: leave --recipe out")
    if run is not None and (size or variant):
        raise UserError(f"the recipe comes from {run}: leave --size and --variant out")
    if (text is None) == (statistics is None):
        raise UserError("give a TEXT to explain, or --statistics DATA to measure: one of them")
    chosen = (
        _of_run(run, recipe_file, settings, json_) if run is not None else _of_family(recipe, size, variant, settings)
    )
    if font is not None and picture is None:
        raise UserError("--font is for a picture: give --picture too, or leave --font out")
    if statistics is not None:
        if tokenizer or lexicon or picture:
            raise UserError("--statistics reads prepared data: leave --tokenizer, --lexicon and --picture out")
        _measure(chosen, statistics, track, stage, seed, visit, json_)
        return
    tokenizer = tokenizer or (run / TOKENIZER if run is not None else None)
    found = api.explain(
        chosen,
        text or "",
        track=track or MAIN,
        tokenizer=tokenizer,
        lexicon=lexicon,
        stage=stage,
        seed=seed,
        visit=visit,
    )
    if picture is not None:
        from unmask.explanation.picture import draw

        output.lacking(draw(found, picture, font=font), json_)
    if json_:
        output.as_json(explanation.to_json(found))
        return
    from unmask.explanation.screen import render

    screen.page(render(found))
    if picture is not None:
        screen.err.print(f"[dim]drawn into {picture}[/]")


def _of_run(run: Path, recipe_file: Path | None, settings: list[str], json_: bool) -> Recipe:
    from unmask import run as runs
    from unmask.settings import override

    file = runs.given_file(run, recipe_file)
    for notice in runs.notices_of(run, file):
        output.notice(notice, json_)
    return override(runs.read_recipe(run, file), settings, own=tuple(file.parts.values()) if file else ())


def _of_family(name: str, size: str | None, variant: str | None, settings: list[str]) -> Recipe:
    from unmask import recipes as family

    return family.get(name, size=size or "base", variant=variant or "paper", settings=settings)


def _measure(
    recipe: Recipe, data: str, track: str | None, stage: int | None, seed: int, visit: int, json_: bool
) -> None:  # fmt: skip
    from unmask import explanation
    from unmask.explanation.statistics import measure, table

    measured = measure(recipe, data, track=track, stage=stage, seed=seed, visit=visit)
    if json_:
        output.as_json(explanation.to_json(measured))
        return
    of_track = f", track {track}" if track else ""
    screen.table(f"{recipe.name}{of_track} on {data}", ["", "measured", "asked for"], list(table(measured)))
    output.notes(measured.notes, json_)
