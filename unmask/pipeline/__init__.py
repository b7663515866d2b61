"""Pipelines: the stages of one file, run as a whole, without some of them, or without each in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unmask import screen
from unmask.comparison.one_command import one_command
from unmask.errors import require, unknown
from unmask.pipeline.call import near
from unmask.pipeline.check import PIPELINE, check_networks, check_pipeline
from unmask.pipeline.description import Pipeline
from unmask.pipeline.execute import do_all, state_of
from unmask.pipeline.read_file import read_pipeline
from unmask.pipeline.report_page import write_report
from unmask.pipeline.results import STAGE_COLUMNS, WORTH_COLUMNS, Variant, notes, results_of, stage_rows, worth_rows
from unmask.pipeline.runner import ApiRunner, Runner
from unmask.pipeline.toml_file import TomlFile
from unmask.pipeline.work import Work, works_of
from unmask.progress import Progress, follow
from unmask.text.atomic_write import drafted

__all__ = ["plan_pipeline", "run_pipeline"]

RESULTS = "results.json"
WHOLE = "whole"


def run_pipeline(
    file: str | Path, *, without: Sequence[str] = (), ablate: bool = False, seeds: int = 1, device: str | None = None,
    stop: Callable[[], bool] = lambda: False, progress: Progress = True, runner: Runner | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the stages of a pipeline file; returns the content of `results.json`, with `stopped`.

    Stages that are finished are not run again, unless something that they are made from has changed. `without`: stages that
    are left out. `ablate`: also run it without each stage in turn, with the same total budget. `seeds`: run all of it with
    this many seeds. `stop`, `progress`: as for `unmask.pretrain`. `runner`: runs the commands of the stages; None: this
    process does."""
    source, whole, variants = _variants(Path(file), without, ablate, seeds, device)

    def tell(record: dict[str, Any]) -> None:
        follow([record], progress, screen.staging)

    with one_command(whole.out, "pipeline"):
        (whole.out / PIPELINE).write_text(source.text, encoding="utf-8")
        runs = runner or ApiRunner(stop, progress)
        done = do_all(_in_turn(variants), runs, tell)
        results = results_of(variants) | _about(source, whole, variants, seeds) | {"finished": done}
        with drafted(whole.out / RESULTS) as draft:
            draft.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_report(whole.out, results)
    return results | {"stopped": not done, "shown_out": near(whole.out), "tables": tables(results)}


def plan_pipeline(
    file: str | Path, *, without: Sequence[str] = (), ablate: bool = False, seeds: int = 1, device: str | None = None
) -> list[dict[str, Any]]:
    """What `run_pipeline` would do: the stages in order, with budget, commands, and whether each is finished or why not."""
    variants = _variants(Path(file), without, ablate, seeds, device)[2]
    found: dict[Path, dict[str, Any]] = {}
    for variant, work in _in_turn(variants):
        about = {"stage": work.stage, "does": work.does, "from": work.start, "variant": variant, "seed": work.seed, "budget": work.budget,
                 "out": str(work.out), "commands": [call.command for call in work.calls]}  # fmt: skip
        found.setdefault(work.out, about | state_of(work, variant))
    return list(found.values())


def tables(results: dict[str, Any]) -> dict[str, Any]:
    """The tables that are shown at the end: the stages, and what each was worth."""
    shown = {"stages": {"columns": STAGE_COLUMNS, "rows": list(stage_rows(results["variants"][0]))}}
    worth = list(worth_rows(results))
    return shown | (
        {"worth": {"columns": WORTH_COLUMNS, "rows": worth}, "notes": list(notes(results))} if worth else {}
    )


def _variants(
    path: Path, without: Sequence[str], ablate: bool, seeds: int, device: str | None
) -> tuple[TomlFile, Pipeline, list[Variant]]:
    """The file, the pipeline that it describes, and the pipelines that are run."""
    require(seeds >= 1, "--seeds must be 1 or more, got {seeds}", seeds=seeds)
    source = TomlFile.read(path)
    whole = read_pipeline(source)
    for name in without:
        if name not in whole.names:
            raise unknown("stage", name, whole.names)
    check_pipeline(source, whole)
    base = whole.without(set(without))
    require(bool(base.stages), "--without leaves no stage of {path}: leave one in", path=path)
    left_out = list(base.ablated()) if ablate else []
    require(
        bool(left_out) or not ablate,
        "--ablate compares scores, and no stage of {path} that adapts has a test file: add test = FILE to one",
        path=path,
    )
    named: list[tuple[str, str | None, Pipeline]] = [
        (WHOLE if not without else f"without {' and '.join(without)}", None, base)
    ]
    named += [(f"without {' and '.join([*without, name])}", name, base.without({name})) for name in left_out]
    for _, _, one in named:
        check_networks(source, one)
    made = [
        Variant(
            name, out, one, tuple(w for seed in range(seeds) for w in works_of(one, whole, seed=seed, device=device))
        )
        for name, out, one in named
    ]
    return source, whole, made


def _in_turn(variants: Sequence[Variant]) -> list[tuple[str, Work]]:
    """Tokenizers and data first, so that wrong data is found early; then all variants of the first seed, and so on."""
    works = [(variant.name, work) for variant in variants for work in variant.works]
    return sorted(works, key=lambda one: (one[1].trains, one[1].seed if one[1].trains else 0))


def _about(source: TomlFile, whole: Pipeline, variants: Sequence[Variant], seeds: int) -> dict[str, Any]:
    made = [call.command for variant in variants for work in variant.works if not work.trains for call in work.calls]
    fresh = not any(stage.run for stage in whole.stages)
    return {"file": str(source.path), "recipe": whole.recipe, "size": whole.size if fresh else "", "budget": whole.budget, "seeds": seeds, "out": str(whole.out),
            "made": list(dict.fromkeys(made))}  # fmt: skip
