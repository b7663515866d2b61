"""Checkpoints: written to a temporary name, flushed, renamed and checksummed. Nothing is ever unpickled.

A run folder holds the files for inference (`weights.safetensors`, `recipe.json`, `tokenizer.json`). If training can be
resumed, it also holds `state/STEP/`: the weights, the optimiser, the memory and the average of the weights (if any) and the
place in the data at that step.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from unmask import tree
from unmask.batch import Memory
from unmask.errors import UserError, require
from unmask.train import saved_tree

WEIGHTS = "weights.safetensors"
OPTIMISER = "optimiser.safetensors"
MEMORY = "memory.safetensors"
AVERAGE = "average.safetensors"
STATE = "state.json"


class NoRoom(UserError):
    """A checkpoint could not be written. The previous checkpoint is still there."""


def unique(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model, each under its first name, so that tied weights appear once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()} | dict(_buffers(model))


def saved(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model that are saved: all of them, unless the model declares which (`saved`)."""
    names: frozenset[str] | None = getattr(model, "saved", None)
    return {name: tensor for name, tensor in unique(model).items() if names is None or name in names}


def save_weights(model: nn.Module, path: Path) -> None:
    """Save all tensors, even if the model declares that fewer are saved."""
    _write(unique(model), path)


def save_declared(model: nn.Module, path: Path) -> None:
    """Save the tensors that the model declares."""
    _write(saved(model), path)


def load_weights(
    model: nn.Module, path: Path, *, partly: bool = False, without: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Load saved tensors into a model. Returns the names of tensors that the file lacks, and of tensors that the model lacks.
    Both lists must be empty, unless `partly`; then a tensor with another shape is in both lists. `without`: modules whose tensors
    are not loaded, such as predict.sst2."""
    found, wanted = (
        {name: one for name, one in tensors.items() if not any(f".{module}." in f".{name}" for module in without)}
        for tensors in (read(path), saved(model))
    )
    missing, left = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    require(
        partly or not (missing or left),
        "{path} does not fit the model: the file lacks {missing}, and the model lacks {left}",
        path=path,
        missing=missing,
        left=left,
    )
    both = set(wanted) & set(found)
    for name in sorted(name for name in both if wanted[name].shape != found[name].shape):
        require(
            partly,
            "{path}: {name} has the shape {shape}, but the model needs {shape_2}",
            path=path,
            name=name,
            shape=tuple(found[name].shape),
            shape_2=tuple(wanted[name].shape),
        )
        both, missing, left = both - {name}, [*missing, name], [*left, name]
    with torch.no_grad():
        for name in both:
            wanted[name].copy_(found[name])
    return missing, left


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Other formats are refused."""
    require(path.is_file(), "no weights at {path}: give the folder of a finished run", path=path)
    with path.open("rb") as file:
        start = file.read(10)
    # a safetensors file begins with the length of its header in eight bytes, which may be any, and then the header: {
    if start[8:9] != b"{" and start[:2] in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        raise UserError(
            (
                "{path} is a pickle, which can run any code when it is read: if you trust it, convert it with "
                "safetensors.torch.save_file(torch.load(OLD, weights_only=True), NEW)"
            ),
            path=path,
        )
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError("{path} is damaged or not a safetensors file: {error}", path=path, error=error) from None


def save_state(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any], *, publish: bool,
    memory: dict[Any, Memory] | None = None, average: dict[str, Tensor] | None = None,
) -> None:  # fmt: skip
    """Write `state/STEP` atomically, then delete the previous state.

    `memory`: the memory that the network needs for the next step, by any names. `average`: the averaged weights, which are
    published instead of the weights."""
    states = folder / "state"
    step = int(state["step"])
    draft = states / f".{step}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        files = {WEIGHTS: saved(model), OPTIMISER: _moments(model, optimiser)}
        kept = {name: value for name, value in (memory or {}).items() if value is not None}
        if average is not None:
            averaged = average | dict(_buffers(model))
            files[AVERAGE] = {name: averaged[name] for name in files[WEIGHTS]}
        if kept:
            files[MEMORY] = saved_tree.named(kept)
            state = state | {"memory": saved_tree.outline(kept)}
        for name, tensors in files.items():
            _write(tensors, draft / name)
        sums = {name: digest(draft / name) for name in files}
        write_text(json.dumps(state | {"sha256": sums, "published": publish}), draft / STATE)
        shutil.rmtree(states / str(step), ignore_errors=True)
        draft.rename(states / str(step))
        if publish:
            put_in_service(folder, step)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        last = newest(folder)
        left = (
            f"the checkpoint of step {last:,} is still there" if last is not None else "no checkpoint was written yet"
        )
        raise NoRoom(
            (
                "could not save step {step:,} in {folder} ({error}): {left}; free disk space, then continue with "
                "--resume"
            ),
            step=step,
            folder=folder,
            error=error,
            left=left,
        ) from None
    for old in _steps(folder):
        if old != step:
            shutil.rmtree(states / str(old), ignore_errors=True)


def put_in_service(folder: Path, step: int) -> None:
    """Publish the weights of a saved state, averaged if it has an average, as the weights of the run: a hard link."""
    draft, place = folder / f".{WEIGHTS}", folder / "state" / str(step)
    source = place / AVERAGE if (place / AVERAGE).is_file() else place / WEIGHTS
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, draft)
    draft.replace(folder / WEIGHTS)


def newest(folder: Path) -> int | None:
    """The step of the last complete state; None if there is none."""
    return max(_steps(folder), default=None)


def last_state(folder: Path) -> dict[str, Any] | None:
    """The last saved state without its tensors: the step, the place in the data, the log record. None if there is none."""
    step = newest(folder)
    if step is None:
        return None
    state: dict[str, Any] = json.loads((folder / "state" / str(step) / STATE).read_text(encoding="utf-8"))
    return state


def last_record(folder: Path) -> dict[str, Any] | None:
    """The log record of the step that was saved last."""
    state = last_state(folder)
    return state["record"] if state else None


def load_state(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, memory: dict[Any, Memory] | None = None,
    average: dict[str, Tensor] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Load the last state into model, optimiser, memory and the averaged weights; returns the rest of it."""
    step = newest(folder)
    if step is None:
        raise UserError("{folder} has no state to resume from: start a new run", folder=folder)
    place = folder / "state" / str(step)
    state: dict[str, Any] = json.loads((place / STATE).read_text(encoding="utf-8"))
    for name, expected in state["sha256"].items():
        require(
            digest(place / name) == expected,
            "{place} is damaged (its checksum differs): the run cannot be resumed",
            place=place / name,
        )
    load_weights(model, place / WEIGHTS)
    _put_moments(model, optimiser, read(place / OPTIMISER))
    if memory is not None:
        memory.clear()
        if MEMORY in state["sha256"]:
            memory.update(_memory(read(place / MEMORY), state.get("memory"), next(model.parameters()).device))
    if average is not None and AVERAGE in state["sha256"]:
        found = read(place / AVERAGE)
        for name in average.keys() & found.keys():
            average[name].copy_(found[name])
    if state["published"]:
        put_in_service(folder, step)  # the last save may have been killed before it published
    return state


def drop_state(folder: Path) -> None:
    shutil.rmtree(folder / "state", ignore_errors=True)


def _steps(folder: Path) -> list[int]:
    states = folder / "state"
    return [int(p.name) for p in states.iterdir() if p.name.isdigit()] if states.is_dir() else []


def _buffers(model: nn.Module) -> list[tuple[str, Tensor]]:
    kept = set(model.state_dict())
    return [(name, buffer) for name, buffer in model.named_buffers() if name in kept]


def _moments(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}|{key}": value.reshape(-1) if value.dim() == 0 else value
        for parameter, values in optimiser.state.items()
        for key, value in values.items()
    }


def _put_moments(model: nn.Module, optimiser: torch.optim.Optimizer, found: dict[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    for name, value in found.items():
        owner, key = name.rsplit("|", 1)
        parameter = parameters[owner]
        value = value.to(parameter.device)
        optimiser.state[parameter][key] = value.reshape(()) if key == "step" else value


def _memory(found: dict[str, Tensor], outline: saved_tree.Outline | None, device: torch.device) -> dict[Any, Memory]:
    kept = saved_tree.rebuilt(outline, found) if outline is not None else saved_tree.without_outline(found)
    moved: dict[Any, Memory] = tree.mapped(kept, lambda tensor: tensor.to(device))
    return moved


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a safetensors file with the permissions of the umask; the library itself would let only the owner read it."""
    path.touch()
    mode = path.stat().st_mode
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})
    path.chmod(mode)


def _write(tensors: dict[str, Tensor], path: Path) -> None:
    """Write and flush under a temporary name, then rename."""
    draft = path.with_name(f".{path.name}.draft")
    save_tensors(tensors, draft)
    _flush(draft)
    draft.replace(path)


def write_text(text: str, path: Path) -> None:
    """Write a file atomically."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    _flush(draft)
    draft.replace(path)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
