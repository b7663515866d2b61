"""The verb that shows what a recipe does with a text, or measures what it does with many: explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Font, Json, OwnRecipe, Seed, Settings
from unmask.cli.program import verb
from unmask.errors import UserError

if TYPE_CHECKING:
    from unmask.explanation.statistics import Statistics


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
    if (text is None) == (statistics is None):
        raise UserError("give a TEXT to explain, or --statistics DATA to measure: one of them")
    said = output.Said(json_)
    if statistics is not None:
        if tokenizer or lexicon or picture or font:
            raise UserError("--statistics reads prepared data: leave --tokenizer, --lexicon, --picture and --font out")
        measured = unmask.measure(recipe, statistics, size=size, variant=variant, settings=settings, track=track,
                                  stage=stage, seed=seed, visit=visit, recipe_file=recipe_file, tell=said)  # fmt: skip
        _show_measured(measured, said)
        return
    found = unmask.explain(recipe, text or "", size=size, variant=variant, settings=settings, track=track,
                           tokenizer=tokenizer, lexicon=lexicon, stage=stage, seed=seed, visit=visit, picture=picture,
                           font=font, recipe_file=recipe_file, tell=said)  # fmt: skip
    if json_:
        output.as_json(found.as_json())
        return
    screen.page(found)
    if picture is not None:
        screen.err.print(f"[dim]drawn into {picture}[/]")


def _show_measured(measured: Statistics, said: output.Said) -> None:
    if said.json:
        output.as_json(measured.as_json())
        return
    of_track = f", track {measured.track}" if measured.track else ""
    screen.table(f"{measured.recipe}{of_track} on {measured.data}", ["", "measured", "asked for"], measured.table())
    said.show_notes()
