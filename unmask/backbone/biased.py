"""Biased attention: scores that a key does not explain are added to them, and are never kept: they are made anew for the way back.

What relative attention adds (B H Q K numbers a layer) would outweigh all that a layer keeps otherwise. On the way back it
is computed once more, a few rows at a time; the attention itself is not.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_CHUNK = 1 << 27  # numbers of a bias that are in memory at one time


def slid(scores: Tensor, keys: int, at: Tensor | None) -> Tensor:
    """B H Q K from B H Q L: column c stands for distance K - 1 - c, and query i takes the distances i + M - j.

    `at`: the place in the row of each query; none: every place, in order, and nothing is copied."""
    length = scores.shape[3]
    rows = length - keys  # T
    if at is not None:
        return scores.gather(3, _columns(scores, keys, at))
    flat = scores.flatten(2)[..., rows - 1 : rows - 1 + rows * (length - 1)]
    return flat.unflatten(2, (rows, length - 1))[..., :keys]


def slid_back(gradient: Tensor, length: int, at: Tensor | None) -> Tensor:
    """B H Q L from B H Q K: each score to the column it was taken from, 0 elsewhere."""
    keys = gradient.shape[3]
    scores = gradient.new_zeros(*gradient.shape[:3], length)
    if at is not None:
        return scores.scatter(3, _columns(scores, keys, at), gradient)
    slid(scores, keys, None).copy_(gradient)  # a view of the scores
    return scores


def _columns(scores: Tensor, keys: int, at: Tensor) -> Tensor:
    column = (scores.shape[3] - keys - 1 - at)[:, :, None] + torch.arange(keys, device=at.device)
    return column[:, None].expand(-1, scores.shape[1], -1, -1)


def bias_of(
    placed: Tensor, place: Tensor, both: Tensor | None, sees: Tensor, same: Tensor | None, at: Tensor | None
) -> Tensor:
    """B H Q K, what is added to the scores: how far, whether of one segment, and minus infinity where nothing is seen."""
    score = slid(placed @ place.transpose(2, 3), sees.shape[3], at)
    if both is not None and same is not None:
        score = score + torch.where(same, both[..., :1], both[..., 1:])
    return (score / math.sqrt(placed.shape[3])).masked_fill(~sees, -math.inf)


class Biased(torch.autograd.Function):
    """softmax(query . key / sqrt(d) + bias) . value, row by row of the batch, the bias made twice rather than kept.

    query, placed: B H Q d. key, value: B H K d. place: B H L d, or 1 H L d. both: B H Q 2, or none."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None,
                sees: Tensor, same: Tensor | None, at: Tensor | None) -> Tensor:  # fmt: skip
        found = [
            _look(query[r], key[r], value[r], bias_of(placed[r], _own(place, r), _part(both, r), sees[r], _part(same, r), _part(at, r)))
            for r in _chunks(query, key)
        ]  # fmt: skip
        out, total = (torch.cat(each) for each in zip(*found, strict=True))
        ctx.save_for_backward(query, key, value, placed, place, both, sees, same, at, out, total)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        query, key, value, placed, place, both, sees, same, at, out, total = ctx.saved_tensors
        scale = 1 / math.sqrt(query.shape[3])
        found: list[list[Tensor]] = []
        of_place: list[Tensor] = []
        for r in _chunks(query, key):
            own, mine, where = _own(place, r), _part(same, r), _part(at, r)
            bias = bias_of(placed[r], own, _part(both, r), sees[r], mine, where)
            moved = _look_back(gradient[r], query[r], key[r], value[r], bias, out[r], total[r])
            of_bias = moved.pop() * scale
            of_scores = slid_back(of_bias, place.shape[2], where)
            moved.append(of_scores @ own)
            if mine is not None:
                alike = (of_bias * mine).sum(-1, keepdim=True)
                moved.append(torch.cat((alike, of_bias.sum(-1, keepdim=True) - alike), -1))
            found.append(moved)
            change = of_scores.transpose(2, 3) @ placed[r]
            of_place.append(change if len(place) > 1 else change.sum(0, keepdim=True))
        each = [torch.cat(parts) for parts in zip(*found, strict=True)]
        whole = torch.cat(of_place) if len(place) > 1 else torch.stack(of_place).sum(0)
        return *each[:4], whole, each[4] if both is not None else None, None, None, None


def _look(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """What is gathered, and the logarithm of the sum that the weights were divided by."""
    if query.is_cuda:
        out, total, _, _ = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, bias, True)
        return out, total
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3]) + bias
    total = scores.logsumexp(-1)
    return (scores - total[..., None]).exp() @ value, total


def _look_back(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, out: Tensor, total: Tensor
) -> list[Tensor]:
    """The gradients of query, key, value and bias."""
    if query.is_cuda:
        unused = torch.zeros((), dtype=torch.int64, device=query.device)  # the seed of a dropout that there is not
        return list(
            torch.ops.aten._scaled_dot_product_efficient_attention_backward(
                gradient, query, key, value, bias, out, total, unused, unused, 0.0, [True] * 4
            )
        )
    scale = 1 / math.sqrt(query.shape[3])
    weights = (query @ key.transpose(2, 3) * scale + bias - total[..., None]).exp()
    of_weights = gradient @ value.transpose(2, 3)
    of_bias = weights * (of_weights - (gradient * out).sum(-1, keepdim=True))
    return [of_bias @ key * scale, of_bias.transpose(2, 3) @ query * scale, weights.transpose(2, 3) @ gradient, of_bias]


def _chunks(query: Tensor, key: Tensor) -> list[slice]:
    """Rows of the batch that are looked at together."""
    each = query.shape[1] * query.shape[2] * key.shape[2]
    step = max(1, _CHUNK // each)
    return [slice(begin, begin + step) for begin in range(0, len(query), step)]


def _own(place: Tensor, rows: slice) -> Tensor:
    return place[rows] if len(place) > 1 else place


def _part(values: Tensor | None, rows: slice) -> Tensor | None:
    return None if values is None else values[rows]
