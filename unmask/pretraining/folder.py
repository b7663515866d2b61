"""The folder of a run: made, or found to be that of the run that is asked for."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require
from unmask.recipe import Recipe, check_types, flat, from_json, to_json
from unmask.text import Tokenizer
from unmask.train import checkpoint

RUN = "run.json"  # what was asked for, and the rows in one pass


def check_free(out: Path, overwrite: bool, resume: bool) -> None:
    """Refuse a folder that may not be written, before any work is done."""
    require(out.is_dir() or not out.exists(), f"{out} is a file, and a run is a folder: choose another --out")
    require(
        overwrite or not out.exists() or (resume and not any(out.iterdir())),
        f"{out} exists already and is no run to resume: choose another --out, or pass --overwrite"
        if resume
        else f"{out} exists already: choose another --out, go on with --resume, or pass --overwrite",
    )
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    require(
        parent.is_dir() and os.access(parent, os.W_OK),
        f"{out} cannot be made: {parent} is not a folder that may be written; choose another --out",
    )


def make(out: Path, recipe: Recipe, tokenizer: Tokenizer, run: dict[str, Any]) -> None:
    """The run folder with its first files. It appears whole or not at all."""
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    checkpoint.write_text(to_json(recipe), draft / "recipe.json")
    tokenizer.save(draft / "tokenizer.json")
    checkpoint.write_text(json.dumps(run, indent=1), draft / RUN)
    shutil.rmtree(out, ignore_errors=True)  # what --overwrite replaces goes last
    draft.rename(out)


def asked_for(out: Path) -> dict[str, Any] | None:
    """What the run in `out` was asked for, and its rows in one pass; none if there is no run."""
    if not (out / RUN).is_file():
        return None
    try:
        run: dict[str, Any] = json.loads((out / RUN).read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{out / RUN} is damaged: the run cannot be resumed") from None
    _check_run(run, out)
    return run


def _check_run(run: Any, out: Path) -> None:
    """Refuse what was asked for if something is missing, or of another type."""
    known = {"recipe": dict[str, Any], "data": tuple[str, ...], "start": str | None, "seed": int, "budget": str,
             "micro": tuple[int, ...]}  # fmt: skip
    require(
        not isinstance(run, dict) or "steps" not in run,
        f"{out} was begun by an earlier version of unmask and cannot be resumed: start a new run with --from {out}",
    )
    lacking = sorted(known.keys() - (run.keys() if isinstance(run, dict) else set()))
    require(not lacking, f"{out / RUN} is damaged, it has no {', '.join(lacking)}: the run cannot be resumed")
    check_types(known, run, f"{out / RUN} is damaged: ")
    require(min(run["micro"], default=0) >= 1, f"{out / RUN} is damaged: micro must be 1 or more, got {run['micro']}")


def check_same(out: Path, run: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to go on with a run that was asked for otherwise."""
    for name, value in asked.items():
        difference = _difference(run[name], value) if name == "recipe" else f" ({run[name]}, got {value})"
        same = not difference if name == "recipe" else run[name] == value
        require(
            same,
            f"{out} was started with another {name}{difference}: give the same to resume it, give only --resume and --out, "
            "or choose another --out",
        )


def _difference(before: Any, now: Any) -> str:
    """The first value in which two recipes differ; empty if in none."""
    one, other = (flat(from_json(json.dumps(recipe))) for recipe in (before, now))
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            return f" ({name} was {one.get(name)}, got {other.get(name)})"
    return ""
