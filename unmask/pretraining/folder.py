"""The folder of a run: made, or found to be that of the run that is asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.recipe import check_types, flat, from_json
from unmask.train import checkpoint

_FIRST_FILES = {"recipe.json", "tokenizer.json", "run.json", ".recipe.json.draft", ".run.json.draft"}


def claim(out: Path, overwrite: bool, resume: bool) -> None:
    """Make the run folder. Only what a run of ours left behind before its first step goes without --overwrite."""
    begun = resume and out.is_dir() and {path.name for path in out.iterdir()} <= _FIRST_FILES
    require(
        overwrite or begun or not out.exists(),
        f"{out} exists already and is no run to resume: choose another --out, or pass --overwrite"
        if resume
        else f"{out} exists already: choose another --out, go on with --resume, or pass --overwrite",
    )
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)


def resumed(out: Path, asked: dict[str, Any]) -> dict[str, Any] | None:
    """The plan of the run in `out`, if it got that far; it must be the same run that is asked for."""
    if not (out / "run.json").is_file():
        return None
    try:
        plan: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
    except ValueError:
        require(checkpoint.newest(out) is None, f"{out / 'run.json'} is damaged: the run cannot be resumed")
        return None
    _check_plan(plan, asked, out / "run.json")
    for name, value in asked.items():
        difference = _difference(plan[name], value) if name == "recipe" else f" ({plan[name]}, got {value})"
        same = not difference if name == "recipe" else plan[name] == value
        require(
            same,
            f"{out} was started with another {name}{difference}: give the same to resume it, or choose another --out",
        )
    return plan


def _check_plan(plan: Any, asked: dict[str, Any], path: Path) -> None:
    """Refuse a plan that lacks something, or has it in another type."""
    known = {"steps": int, "micro": tuple[int, ...], "recipe": dict[str, Any]}
    lacking = sorted((asked.keys() | known.keys()) - (plan.keys() if isinstance(plan, dict) else set()))
    require(not lacking, f"{path} is damaged, it has no {', '.join(lacking)}: the run cannot be resumed")
    check_types(known, plan, f"{path} is damaged: ")
    stages, steps = len(asked["recipe"]["schedule"]), [plan["steps"], *plan["micro"]]
    require(
        len(steps) == stages + 1 and min(steps) >= 1,
        f"{path} is damaged: steps and micro must be 1 or more, micro for each of {stages} stages, got {steps}",
    )


def _difference(before: Any, now: Any) -> str:
    """The first value in which two recipes differ; empty if in none."""
    one, other = (flat(from_json(json.dumps(recipe))) for recipe in (before, now))
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            return f" ({name} was {one.get(name)}, got {other.get(name)})"
    return ""
