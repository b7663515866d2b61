"""The verb that compares recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import options, output
from unmask.cli.options import Device, Json, Overwrite, Settings, Size
from unmask.cli.program import verb


@verb(
    'unmask compare roberta electra "roberta+hide.budget=0.4" --data data/wiki --tasks tasks/ --budget 5m,20m --out c/'
)
def compare(
    recipes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECIPE...",
            help="Names with settings: roberta, roberta+hide.budget=0.4, bert+size=mini, or a file from --sweep.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the comparison. If it holds one, that goes on.")] = ...,  # type: ignore[assignment]
    data: Annotated[
        list[str],
        typer.Option(
            help="Text (files, folders or globs), prepared for each recipe with a tokenizer of its own kind; or a folder made by "
            "'unmask prepare', the same for all. Give it several times to mix."
        ),
    ] = [],  # noqa: B006
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="A folder of tasks: NAME/train.jsonl, dev.jsonl, test.jsonl; minimal pairs and texts as files."
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Of each run, one or several: 5m,20m or 1e8tok or 1e15flop,4e15flop.")
    ] = "20m",
    seeds: Annotated[
        int, typer.Option(help="Pretraining runs of each recipe and budget; roberta+seeds=2 for one recipe.")
    ] = 1,
    task_seeds: Annotated[int, typer.Option(help="Adapting runs of each pretrained model and task.")] = 3,
    size: Size = "base",
    settings: Settings = [],  # noqa: B006
    sweep: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=A,B,C",
            help="First find the best of these values for each recipe, by successive halving; several options are combined.",
        ),
    ] = [],  # noqa: B006
    sweep_by: Annotated[
        str, typer.Option(help="What the sweep chooses by: loss (on held-out text), or a task.")
    ] = "loss",
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Also without each track that takes turns (ERNIE 2.0's tasks), and each alone."),
    ] = False,
    untrained: Annotated[
        bool,
        typer.Option(
            "--untrained/--no-untrained",
            help="Also adapt copies with random weights, and copies after one step, to see the gain.",
        ),
    ] = True,
    at_once: Annotated[
        int | None,
        typer.Option(
            help="Runs that share the machine: by default 1 for budgets in time, otherwise 4, and on a CPU one for each core, at most 4."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="For text: a tokenizer.json or a run folder whose tokenizer all recipes use."),
    ] = None,
    lexicon: options.Lexicons = [],  # noqa: B006
    graph: options.Graph = None,
    lines: options.TextLines = False,
    encoding: options.TextEncoding = None,
    holdout: options.TextHoldout = None,
    report: Annotated[
        bool, typer.Option("--report", help="Only draw the report again, from what was measured.")
    ] = False,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Pretrain recipes with equal budgets, adapt each to every task, and show which is best for your text.

    A comparison that was stopped goes on with the same command; more recipes, budgets and seeds can be added later."""
    if report:
        given = {"RECIPE": recipes, "--data": data, "--tasks": tasks, "--budget": budget != "20m", "--seeds": seeds != 1,
                 "--task-seeds": task_seeds != 3, "--size": size != "base", "--set": settings, "--sweep": sweep,
                 "--sweep-by": sweep_by != "loss", "--ablate": ablate, "--no-untrained": not untrained,
                 "--at-once": at_once is not None, "--device": device, "--overwrite": overwrite, "--tokenizer": tokenizer,
                 "--lexicon": lexicon, "--graph": graph, "--lines": lines, "--encoding": encoding, "--holdout": holdout}  # fmt: skip
        options.refuse(given, "--report")
        results = unmask.compare_report(out)
    else:
        results = unmask.compare(
            recipes or [], out, data=data, tasks=tasks, budget=budget, seeds=seeds, task_seeds=task_seeds, size=size,
            settings=settings, sweep=sweep, sweep_by=sweep_by, ablate=ablate, untrained=untrained, at_once=at_once, device=device, overwrite=overwrite,
            tokenizer=tokenizer, lexicon=lexicon, graph=graph, lines=lines, encoding=encoding,
            holdout=None if holdout is None else options.share(holdout), stop=options.interrupt(), progress=output.progress(json_),
        )  # fmt: skip
    failed = sum(run["state"] == "failed" for run in results["runs"])
    if json_:
        output.as_json(results)
        raise typer.Exit(130 if results.get("stopped") else 1 if failed else 0)
    screen.table(f"{out}: scores in %, ± half of the 95% interval", **results["table"])
    for sentence in results["ranking"]:
        screen.out.print(f"the order changes with the budget: {sentence}", markup=False)
    if results.get("stopped"):
        screen.note("stopped: run the same command again to continue")
        raise typer.Exit(130)
    if failed:
        screen.fail(f"{failed} of {len(results['runs'])} runs failed: the report says why ({out / 'report.html'})")
    screen.done(f"report: {out / 'report.html'}; numbers: {out / 'results.json'}")
