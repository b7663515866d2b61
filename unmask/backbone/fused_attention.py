"""Fused relative attention for a GPU: the scores of Q queries and K keys are never written to GPU memory.

The scores of distances are a matrix product with the table of L distances: B H Q L numbers. The kernels read each pair's
column of it: nothing is shifted, scaled or masked in memory. These scores are not saved. The backward pass computes them
again, and overwrites them with their gradient. biased_attention.py does the same in plain operations, for a CPU.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.errors import require

AVAILABLE = importlib.util.find_spec("triton") is not None  # it comes with torch for GPUs, but not on Windows
_KNOWN = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Tile:
    """The part of the score matrix that one program of a kernel computes at a time, and how it is run."""

    queries: int
    keys: int
    warps: int
    stages: int  # how many tiles are loaded from memory at the same time
    ahead: bool = True  # the scores of distances are loaded one tile ahead
    registers: int | None = None  # the largest number per thread: with fewer, more programs run at the same time


@dataclass(frozen=True)
class Tiles:
    """The tiles of the three kernels."""

    look: Tile
    keys_back: Tile
    queries_back: Tile


def tiles(width: int, dtype: torch.dtype) -> Tiles:
    """The tiles for heads of this width, as large as registers and shared memory allow."""
    require(
        dtype in _KNOWN,
        ("relative attention on a GPU works in the precisions {known}, got {dtype}: convert the model to one of them"),
        known=_KNOWN,
        dtype=dtype,
    )
    require(
        width <= 256,
        "relative attention on a GPU works with heads up to width 256, got {width}: lower system.backbone.head",
        width=width,
    )
    if dtype == torch.float32:  # without tensor cores
        size = 32 if width <= 64 else 16
        return Tiles(Tile(size, size, 4, 1), Tile(size, size, 8, 1), Tile(size, size, 8, 1))
    if width <= 64:
        return Tiles(
            Tile(64, 64, 4, 3, ahead=False, registers=168),
            Tile(32, 64, 4, 2, registers=168),
            Tile(64, 64, 4, 2, ahead=False),
        )
    if width <= 128:
        return Tiles(Tile(64, 64, 4, 2), Tile(32, 64, 8, 2), Tile(64, 32, 8, 2))
    return Tiles(Tile(64, 32, 8, 2), Tile(32, 32, 8, 1), Tile(32, 32, 8, 1))


@torch.library.custom_op("unmask::relative_attention", mutates_args=())
def look(
    content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None, seen: Tensor, end: Tensor,
    begin: Tensor, column: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """B H Q d, the attention output; and B H Q, for the backward pass, the base-2 logarithm of the sum of the weights.

    content, placed: B H Q d, the queries for keys and for distances. key_value: B 2H K d, all keys, then all values.
    place: B H L d, the keys of distances, or 1 H L d for all rows. both: B H Q 2, what is added for keys of the same
    segment, and of another segment. The other arguments are fields of AttentionSide."""
    from unmask.backbone import (
        _fused_kernels as fused_kernels,
    )  # imported here because Triton is not installed everywhere

    rows, heads, queries, width = content.shape
    check_size(content, key_value, place)
    content, (key, value) = _lined(content), _lined(key_value).chunk(2, 1)
    both = None if both is None else both.contiguous()
    found, total = _results(content)
    tile = tiles(width, content.dtype).look
    with _alone(content):
        distant = _scores(placed, place)
        fused_kernels.look[-(-queries // tile.queries), heads, rows](
            content, key, value, distant, both, seen, end, column, found, total,
            *_strides(content), *_strides(key), *distant.stride()[:2], *_strides(found),
            *_sizes(content, key, distant), **_options(content, tile),
        )  # fmt: skip
    return found, total


@torch.library.custom_op("unmask::relative_attention_back", mutates_args=())
def look_back(
    gradient: Tensor, content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None,
    seen: Tensor, end: Tensor, begin: Tensor, column: Tensor | None, total: Tensor, inner: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of content, key_value, placed, place and both (empty if `both` is None).

    inner: B H Q, the product of each query's output with the gradient of that output."""
    from unmask.backbone import _fused_kernels as fused_kernels

    rows, heads, queries, width = content.shape
    gradient, content, (key, value) = _lined(gradient), _lined(content), _lined(key_value).chunk(2, 1)
    both, inner = None if both is None else both.contiguous(), inner.contiguous()
    of_content, of_key_value, of_placed, of_place, of_both = _gradients(content, key_value, placed, place, both)
    of_key, of_value = of_key_value.chunk(2, 1)
    chosen, scale = tiles(width, content.dtype), 1 / math.sqrt(width)
    with _alone(content):
        distant = _scores(placed, place)
        strides = (*_strides(content), *_strides(key), *distant.stride()[:2], *_strides(gradient))
        sizes = _sizes(content, key, distant)
        tile = chosen.keys_back
        fused_kernels.keys_back[-(-key.shape[2] // tile.keys), heads, rows](
            content, key, value, distant, both, seen, begin, column, gradient, total, inner, of_key, of_value,
            *strides, *_strides(of_key), *sizes, scale, **_options(content, tile),
        )  # fmt: skip
        tile = chosen.queries_back  # last: it overwrites what the other kernel reads
        fused_kernels.queries_back[-(-queries // tile.queries), heads, rows](
            content, key, value, distant, both, seen, end, column, gradient, total, inner, of_content, of_both,
            *strides, *_strides(of_content), *sizes, scale, **_options(content, tile),
        )  # fmt: skip
        _products_back(distant, placed, place, of_placed, of_place)
    return of_content, of_key_value, of_placed, of_place, of_both


def check_size(content: Tensor, key_value: Tensor, place: Tensor) -> None:
    """Refuse a head of a row with more scores than a 32-bit index can count."""
    queries, keys, distances = content.shape[2], key_value.shape[2], place.shape[2]
    require(
        queries * max(keys, distances) < 1 << 31,
        (
            "relative attention on a GPU can have up to 2^31 scores per head, got {queries:,} tokens that see "
            "{keys:,}: lower --context or --memory"
        ),
        queries=queries,
        keys=keys,
    )


@contextmanager
def _alone(x: Tensor) -> Iterator[None]:
    """A context without autocast, on the device of `x`: the kernels compute in the precision of their inputs."""
    with torch.autocast(x.device.type, enabled=False), torch.cuda.device_of(x):
        yield


def _scores(placed: Tensor, place: Tensor) -> Tensor:
    """B H Q L, the scores of every query with every distance.

    If all rows share one table, this is one product for each head, without copies."""
    if len(place) > 1:
        return placed @ place.transpose(2, 3)
    rows, queries = placed.shape[0], placed.shape[2]
    return torch.bmm(_by_head(placed), place[0].transpose(1, 2)).unflatten(1, (rows, queries)).transpose(0, 1)


def _products_back(gradient: Tensor, placed: Tensor, place: Tensor, of_placed: Tensor, of_place: Tensor) -> None:
    """Write the gradients of `placed` and `place` into `of_placed` and `of_place`. `gradient`: of the scores."""
    if len(place) > 1:
        of_placed.copy_(gradient @ place)
        of_place.copy_(gradient.transpose(2, 3) @ placed)
    else:
        flat = _by_head(gradient)
        torch.bmm(flat, place[0], out=_by_head(of_placed))
        torch.bmm(flat.transpose(1, 2), _by_head(placed), out=of_place[0])


def _by_head(x: Tensor) -> Tensor:
    """H (B Q) d from B H Q d. There is no copy if the heads of a token are contiguous, as they are after a projection."""
    return x.transpose(0, 1).flatten(1, 2)


def _lined(x: Tensor) -> Tensor:
    """The same tensor with contiguous vectors, which the kernels need."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _results(content: Tensor) -> tuple[Tensor, Tensor]:
    return _contiguous_heads(content), content.new_empty(content.shape[:3], dtype=torch.float32)


def _gradients(
    content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    of_both = content.new_empty(0) if both is None else both.new_empty(both.shape)
    return (
        _contiguous_heads(content),
        _contiguous_heads(key_value),
        _contiguous_heads(placed),
        _contiguous_heads(place),
        of_both,
    )


def _contiguous_heads(x: Tensor) -> Tensor:
    """A new tensor of this shape, B H T d, in which the heads of a token are contiguous: they are joined without a copy."""
    return torch.empty_permuted(x.shape, (0, 2, 1, 3), dtype=x.dtype, device=x.device)


def _strides(x: Tensor) -> tuple[int, ...]:
    return x.stride()[:3]


def _sizes(content: Tensor, key: Tensor, distant: Tensor) -> tuple[float, ...]:
    """The numbers of queries, keys and distances, and the factor that turns a score into an exponent of two."""
    factor = math.log2(math.e) / math.sqrt(content.shape[3])
    return content.shape[2], key.shape[2], distant.shape[3], factor


def _options(content: Tensor, tile: Tile) -> dict[str, Any]:
    width = content.shape[3]
    return {
        "width": width, "WIDTH": max(16, 1 << (width - 1).bit_length()), "QUERIES": tile.queries, "KEYS": tile.keys,
        "AHEAD": tile.ahead, "PRECISION": "ieee" if content.dtype == torch.float32 else "tf32",
        "num_warps": tile.warps, "num_stages": tile.stages, "maxnreg": tile.registers,
    }  # fmt: skip


@look.register_fake
def _(content: Tensor, *others: Tensor | None) -> tuple[Tensor, Tensor]:
    return _results(content)


@look_back.register_fake
def _(
    gradient: Tensor, content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None,
    *others: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return _gradients(content, key_value, placed, place, both)


def _keep(ctx: Any, inputs: tuple[Tensor | None, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _backward(ctx: Any, gradient: Tensor, unused: Tensor) -> tuple[Tensor | None, ...]:
    *inputs, found, total = ctx.saved_tensors
    inner = (gradient.float() * found.float()).sum(-1)  # not in the kernel: the compiler fuses these operations
    *each, of_both = look_back(gradient, *inputs, total, inner)
    return *each, None if inputs[4] is None else of_both, None, None, None, None


look.register_autograd(_backward, setup_context=_keep)
