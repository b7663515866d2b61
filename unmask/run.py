"""The run folder: its files, the format of recipe.json, and how a run is created, opened and saved. Only this file and the
training loop write there; the loop owns `state/`, the log and the plan (`unmask.train`)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from unmask import formats, recipe_file
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile
from unmask.recipe_json import plain, recipe_of
from unmask.run_base import BASE as BASE
from unmask.run_base import Base as Base
from unmask.run_base import read_base
from unmask.text import Tokenizer
from unmask.train import checkpoint
from unmask.type_check import check_types
from unmask.version import __version__

RECIPE = "recipe.json"
TOKENIZER = "tokenizer.json"
WEIGHTS = checkpoint.WEIGHTS
REQUEST = "run.json"  # the settings of a pretraining, and its rows in one pass
GRAPH = "graph"  # the folder of the graph whose entities the network reads
IMPORTED = "import.json"  # the report of 'unmask import'
_MAKE = "make one with 'unmask pretrain' or 'unmask import'"


@dataclass(frozen=True)
class Run:
    """The content of a run folder, without the state of an unfinished training."""

    folder: Path
    recipe: Recipe
    tokenizer: Tokenizer
    weights: Path  # the file
    random: tuple[str, ...] = ()  # tensors with random weights, because an imported checkpoint did not have them
    notices: tuple[str, ...] = ()  # what the user should know
    base: Base | None = None  # the run whose weights it uses; None: it holds all its weights


def open(folder: str | Path, *, recipe: str | Path | RecipeFile | None = None) -> Run:
    """Open the run in a folder. `recipe`: the user's recipe file, if the run uses parts of one."""
    folder = Path(folder)
    require(folder.is_dir(), "no run at {folder}: {make}", folder=folder, make=_MAKE)
    for name in (RECIPE, TOKENIZER, WEIGHTS):
        require((folder / name).is_file(), "{folder} is not a finished run: it has no {name}", folder=folder, name=name)
    file = given_file(folder, recipe)
    read = read_recipe(folder, file)
    notices = notices_of(folder, file)
    base = read_base(folder)
    return Run(folder, read, Tokenizer.load(folder), folder / WEIGHTS, _random(folder / IMPORTED), notices, base)


def claim(
    out: Path, *, overwrite: bool, base: Path | None = None, reads: Sequence[Path] = (), resume: bool | None = None
) -> None:
    """Before any work is done, refuse a folder that a new run must not be written to.

    `base`: the run that the new one starts from. `reads`: other files and folders that the new run reads. `resume`: whether
    --resume was given; None: there is no such option."""
    require(out.is_dir() or not out.exists(), "{out} is a file, but a run is a folder: choose another --out", out=out)
    choices = {None: "choose another --out", False: "choose another --out, resume it with --resume"}
    require(
        overwrite or not out.exists() or (bool(resume) and not any(out.iterdir())),
        "{out} exists already and is not a run to resume: choose another --out, or pass --overwrite"
        if resume
        else "{out} exists already: {choices}, or pass --overwrite",
        out=out,
        choices=choices.get(resume, ""),
    )
    require(
        base is None or base.resolve() != out.resolve(),
        "{out} is the run that the new one starts from: choose another --out",
        out=out,
    )
    known = not out.is_dir() or not any(out.iterdir()) or any((out / name).exists() for name in (RECIPE, REQUEST))
    require(
        known,
        "{out} is a folder with files that are not a run, and --overwrite replaces only runs: choose another --out",
        out=out,
    )
    inside = [path for path in (*reads, *([base] if base else [])) if out.resolve() in path.resolve().parents]
    require(
        not inside,
        "{inside} is inside {out}, which would be replaced: choose another --out",
        inside=", ".join(map(str, inside)),
        out=out,
    )
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    require(
        parent.is_dir() and os.access(parent, os.W_OK),
        "{out} cannot be created: {parent} is not a folder with permission to write; choose another --out",
        out=out,
        parent=parent,
    )


def create(
    out: Path, recipe: Recipe, tokenizer: Tokenizer, *, system: nn.Module | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None, graph: Path | None = None,
) -> None:  # fmt: skip
    """Write a run folder atomically; it replaces an existing one (see `claim`).

    `system`: its weights are saved too. `more`: other files, JSON by file name. `graph`: the folder of the graph whose
    entities the network reads; it is copied."""
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        checkpoint.write_text(to_json(recipe), draft / RECIPE)
        tokenizer.save(draft / TOKENIZER)
        for name, content in (more or {}).items():
            checkpoint.write_text(json.dumps(content, indent=1), draft / name)
        if graph is not None:
            shutil.copytree(graph, draft / GRAPH)
        if system is not None:
            checkpoint.save_weights(system, draft / WEIGHTS)
        replace_folder(draft, out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def replace_folder(draft: Path, out: Path) -> None:
    """Rename a folder over another one. The old folder is deleted only when the new one is in its place."""
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    try:
        draft.rename(out)
    except BaseException:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def to_json(recipe: Recipe) -> str:
    """The text of recipe.json for a recipe."""
    return json.dumps(as_data(recipe), indent=1)


def as_data(recipe: Recipe) -> dict[str, Any]:
    """The content of recipe.json: the format, the version of unmask, the recipe files whose parts it uses, and the recipe."""
    used = recipe_file.files_used_by(recipe)
    require(
        len(used) <= 1,
        "a run can use the parts of one recipe file, got parts of {files}: put them into one file",
        files=" and ".join(str(file.path) for file in used),
    )
    files = {"files": {file.name: file.sha256 for file in used}} if used else {}
    return {"format": formats.NEWEST, "written_by": __version__} | files | plain(recipe)


def from_json(text: str, where: str = "this JSON", file: RecipeFile | None = None) -> Recipe:
    """Read a recipe that `to_json` wrote, in this or an earlier format. `where`: the name of the source, for errors."""
    return recipe_of(formats.upgraded(_json(text, where), where), where, file)


def read_recipe(folder: Path, file: RecipeFile | None = None) -> Recipe:
    """The recipe of a run. `file`: the user's recipe file, if the run uses parts of one."""
    return from_json(_text(folder / RECIPE), str(folder / RECIPE), file)


def recipe_to_continue(folder: Path, recipe: str | Path | RecipeFile | None) -> Recipe:
    """The recipe of a run that a new one starts from; its weights are not read yet. `recipe`: as for `open`."""
    require((folder / RECIPE).is_file(), "no run to continue from at {folder}: {make}", folder=folder, make=_MAKE)
    return read_recipe(folder, given_file(folder, file_for(folder, recipe)))


def given_file(folder: Path, recipe: str | Path | RecipeFile | None) -> RecipeFile | None:
    """Load the recipe file that the user gives for a run. It is an error if the run uses no recipe file."""
    if recipe is None:
        return None
    require(
        bool(files_of(folder)),
        "{folder} uses no parts of a recipe file: leave --recipe out (in Python, recipe=...)",
        folder=folder,
    )
    return recipe if isinstance(recipe, RecipeFile) else recipe_file.load(recipe)


def file_for(folder: str | Path, recipe: str | Path | RecipeFile | None) -> str | Path | RecipeFile | None:
    """`recipe` if the run in a folder uses parts of a recipe file; otherwise None."""
    return recipe if files_of(Path(folder)) else None


def files_of(folder: Path) -> dict[str, str]:
    """The recipe files whose parts a run uses: name and SHA-256 of each. These files are never searched for or loaded."""
    if not (folder / RECIPE).is_file():
        return {}
    data = _json(_text(folder / RECIPE), str(folder / RECIPE))
    files = data.get("files", {}) if isinstance(data, dict) else {}
    require(
        isinstance(files, dict),
        "{folder} is damaged: files must be names with hashes, got {files!r:.60}",
        folder=folder / RECIPE,
        files=files,
    )
    return {str(name): str(value) for name, value in files.items()}


def notices_of(folder: Path, file: RecipeFile | None) -> tuple[str, ...]:
    """A notice if a recipe file is not the same as the one that a run was made with."""
    if file is None or files_of(folder).get(file.name) == file.sha256:
        return ()
    return (f"{file.path} was changed since {folder} was made: the model may differ from the one that was trained",)


def request_of(out: Path) -> dict[str, Any] | None:
    """The settings of the pretraining in `out`, and its rows in one pass; None if there is no run."""
    if not (out / REQUEST).is_file():
        return None
    try:
        request: dict[str, Any] = json.loads((out / REQUEST).read_text(encoding="utf-8"))
    except ValueError:
        raise UserError("{out} is damaged: the run cannot be resumed", out=out / REQUEST) from None
    _check_request(request, out)
    return request | {"recipe": formats.upgraded(request["recipe"], str(out / REQUEST))}


def _check_request(request: Any, out: Path) -> None:
    """Refuse a request in which a field is missing or has a wrong type."""
    known = {"recipe": dict[str, Any], "data": tuple[str, ...], "start": str | None, "seed": int, "budget": str,
             "micro": tuple[int, ...]}  # fmt: skip
    where = out / REQUEST
    require(
        not isinstance(request, dict) or "steps" not in request,
        ("{out} was started by an earlier version of unmask and cannot be resumed: start a new run with --from {out}"),
        out=out,
    )
    lacking = sorted(known.keys() - (request.keys() if isinstance(request, dict) else set()))
    require(
        not lacking,
        "{where} is damaged, it has no {lacking}: the run cannot be resumed",
        where=where,
        lacking=", ".join(lacking),
    )
    check_types(known, request, f"{where} is damaged: ")
    require(
        min(request["micro"], default=0) >= 1,
        "{where} is damaged: micro must be 1 or more, got {request}",
        where=where,
        request=request["micro"],
    )


def _random(report: Path) -> tuple[str, ...]:
    """The names of tensors that an import did not find; empty if the run was not imported."""
    if not report.is_file():
        return ()
    try:
        return tuple(map(str, json.loads(report.read_text(encoding="utf-8"))["missing"]))
    except (ValueError, TypeError, KeyError):
        raise UserError("{report} is damaged: import the model again, or delete that file", report=report) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            "{path} is damaged or not a recipe: it is not UTF-8 ({error})", path=path, error=error
        ) from None


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError("{where} is damaged or not a recipe: {error}", where=where, error=error) from None
