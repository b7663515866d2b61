"""Save and load a tree of tensors: the tensors by their path, and an outline in JSON that says how to rebuild the tree."""

from __future__ import annotations

import dataclasses
import importlib
import json
from typing import Any

from torch import Tensor

from unmask.errors import require
from unmask.part_names import public_name
from unmask.tree import inside

Outline = dict[str, Any]  # one entry: the kind of the value, and its content
_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple}


def named(value: Any, path: tuple[Any, ...] = ()) -> dict[str, Tensor]:
    """Copies of the tensors of a tree, each under the JSON of its path, such as `[0, "layers"]`.

    They are copies because a file cannot hold two tensors that share memory."""
    if isinstance(value, Tensor):
        return {json.dumps(path): value.detach().to("cpu", copy=True)}
    items = inside(value) or ()
    return {key: tensor for name, item in items for key, tensor in named(item, (*path, name)).items()}


def outline(value: Any, path: tuple[Any, ...] = ()) -> Outline:
    """The structure of a tree, as JSON."""
    if isinstance(value, Tensor):
        return {"tensor": json.dumps(path)}
    items = inside(value)
    if items is None:
        require(
            value is None or isinstance(value, bool | int | float | str),
            (
                "a checkpoint can hold tensors, numbers, words and none, got {value_kind} at {path} of the memory: "
                "use a tensor"
            ),
            value_kind=type(value).__name__,
            path=list(path),
        )
        return {"value": value}
    return {_kind(value, path): [[_name(name, path), outline(item, (*path, name))] for name, item in items]}


def rebuilt(outline: Outline, tensors: dict[str, Tensor]) -> Any:
    """The tree that `named` and `outline` described."""
    ((kind, content),) = outline.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    items = {name: rebuilt(item, tensors) for name, item in content}
    if kind == "dict":
        return items
    return _SEQUENCES[kind](items.values()) if kind in _SEQUENCES else _record(kind)(**items)


def _kind(value: Any, path: tuple[Any, ...]) -> str:
    """`dict`, `list`, `tuple`, or the public name of a record."""
    if type(value) in (dict, list, tuple):
        return type(value).__name__
    home, name = type(value).__module__, type(value).__qualname__
    require(
        home.split(".")[0] == "unmask",
        (
            "a checkpoint can hold dicts, lists, tuples and records of unmask, got {home}.{name} at {path} of the "
            "memory: use one of these"
        ),
        home=home,
        name=name,
        path=list(path),
    )
    return public_name(type(value))


def _name(name: Any, path: tuple[Any, ...]) -> Any:
    require(
        isinstance(name, str | int),
        "names in a memory must be words or whole numbers, got {name!r} at {path}: rename it",
        name=name,
        path=list(path),
    )
    return name


def _record(name: str) -> Any:
    """The class of a record. Only names under `unmask.` are ever imported."""
    module, _, called = name.rpartition(".")
    require(module.startswith("unmask."), "a checkpoint may name only records of unmask, got {name!r}", name=name)
    found = getattr(importlib.import_module(module), called, None)
    require(
        dataclasses.is_dataclass(found),
        (
            "this checkpoint holds a record that does not exist here: {name}. Install the version of unmask that "
            "wrote it"
        ),
        name=name,
    )
    return found


def without_outline(found: dict[str, Tensor]) -> dict[int, Any]:
    """A memory that was saved in the old format without an outline: that of a Transformer-XL, by micro-batch, layers first."""
    numbers = sorted({int(name.partition("|")[0]) for name in found})
    record = _record("unmask.backbone.LayerMemory")
    return {n: record(found[f"{n}|layers"].transpose(0, 1).contiguous(), found[f"{n}|real"]) for n in numbers}
