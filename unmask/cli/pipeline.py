"""The verb that runs the stages of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import options, output
from unmask.cli.options import Device, Json
from unmask.cli.program import verb


@verb("unmask pipeline reviews.toml --ablate --seeds 3")
def pipeline(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The stages: docs/pipeline.md lists the fields.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show the stages, their budgets and the commands that they stand for.")
    ] = False,
    without: Annotated[
        list[str], typer.Option(metavar="STAGE", help="Leave a stage out; its budget goes to the others; repeatable.")
    ] = [],  # noqa: B006
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Also run it without each stage in turn, and show what each stage was worth."),
    ] = False,
    seeds: Annotated[int, typer.Option(help="Run all of it with this many seeds, for intervals.")] = 1,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Pretrain on general text, inject knowledge, continue on your own text, adapt to a task: the stages of one file.

    A pipeline that was stopped goes on with the same command. A stage that is finished is not run again, unless its fields,
    its files or the stage before it have changed."""
    asked: dict[str, Any] = {"without": without, "ablate": ablate, "seeds": seeds, "device": device}
    if plan:
        _show_plan(unmask.plan_pipeline(file, **asked), json_)
        return
    results = unmask.run_pipeline(file, **asked, stop=options.interrupt(), progress=output.progress(json_))
    tables, out = results.pop("tables"), Path(results.pop("shown_out"))
    if json_:
        output.as_json(results)
        raise typer.Exit(130 if results["stopped"] else 0)
    screen.table(f"runs in {out / 'runs'}", **tables["stages"])
    if "worth" in tables:
        screen.table("what each stage was worth, in %; ± is half of the 95% interval", **tables["worth"])
        for text in tables["notes"]:
            screen.note(text)
    if results["stopped"]:
        screen.note("stopped: run the same command again to continue")
        raise typer.Exit(130)
    screen.done(f"report: {out / 'report.html'}; numbers: {out / 'results.json'}")


def _show_plan(found: list[dict[str, Any]], json_: bool) -> None:
    if json_:
        output.as_json(found)
        return
    rows = [
        [
            one["stage"],
            one["does"],
            one["from"] or "-",
            one["budget"] or "-",
            one["variant"],
            str(one["seed"]),
            _state(one),
        ]
        for one in found
    ]
    screen.table("", ["stage", "what it does", "from", "budget", "variant", "seed", "state"], rows)
    screen.out.print("The commands that they stand for:")
    for one in found:
        for command in one["commands"]:
            screen.out.print(f"  {command}", markup=False)


def _state(one: dict[str, Any]) -> str:
    return (
        f"runs again: {'; '.join(one['why'])}"
        if one["why"]
        else {"begins": "to do", "goes on": "to go on"}.get(one["state"], one["state"])
    )
