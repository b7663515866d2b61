"""Trees of tensors: records, dicts, lists and tuples, handled without knowing their classes.

A memory is such a tree. The first dimension of its tensors is the rows (B ...); a tensor without dimensions belongs to all
rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor


def inside(value: Any) -> list[tuple[Any, Any]] | None:
    """The names and values in a record, a dict, a list or a tuple; None for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list | tuple) else None


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same tree with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    items = inside(value)
    if items is None:
        return value
    changed = {name: mapped(item, change) for name, item in items}
    if isinstance(value, dict):
        return changed
    if isinstance(value, list | tuple):
        make = getattr(type(value), "_make", type(value))  # a named tuple is built with `_make`
        return make(changed.values())
    return dataclasses.replace(value, **changed)


def tensors(value: Any) -> list[Tensor]:
    """All tensors of a tree, in order."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for _, item in inside(value) or () for tensor in tensors(item)]


def copied(value: Any) -> Any:
    """The same tree with copies of its tensors."""
    return mapped(value, lambda tensor: tensor.detach().clone())


def rows_of(value: Any, rows: Tensor) -> Any:
    """A new memory that holds these rows, in this order; a row may be chosen more than once."""
    return mapped(value, lambda tensor: tensor.index_select(0, rows) if tensor.dim() else tensor)


def texts_of(value: Any, rows: Tensor) -> Any:
    """The same for texts that stay with their source: what a record names in `per_source` is shared by all texts of a
    source, so it is not copied."""
    kept = getattr(value, "per_source", ())
    if not kept:
        return rows_of(value, rows)
    changed = {name: rows_of(item, rows) for name, item in inside(value) or () if name not in kept}
    return dataclasses.replace(value, **changed)


def signature(value: Any) -> Hashable:
    """Equal for two trees if and only if their classes, names, shapes, dtypes and values other than tensors are equal.

    Work that was recorded for a tree can be replayed for all trees with the same signature."""
    if isinstance(value, Tensor):
        return "tensor", tuple(value.shape), value.dtype
    items = inside(value)
    if items is None:
        return type(value), value
    return type(value), tuple((name, signature(item)) for name, item in items)
