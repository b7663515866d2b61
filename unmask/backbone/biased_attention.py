"""Biased attention: relative attention in plain PyTorch operations.

It runs on a CPU, and the fused kernels are tested against it. The scores of distances and segments are a bias, B H Q K.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.backbone.dense_attention import dense_attention


def look(
    content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None, seen: Tensor,
    column: Tensor | None, dropped: float = 0.0,
) -> Tensor:  # fmt: skip
    """B H Q d, the attention output of the queries; zeros for a query that sees no key.

    The arguments are those of fused_attention.look. `dropped`: the dropout rate of attention weights."""
    key, value = key_value.chunk(2, 1)
    blind = (seen == 0).all(-1, keepdim=True)  # sees no key: the first token of an order, with an empty memory
    bias = bias_of(placed, place, both, seen.masked_fill(blind, 1), column)  # a softmax over no keys would give NaN
    found = dense_attention(content, key, value, bias, dropout=dropped)
    return found.masked_fill(blind[:, None], 0.0)


def bias_of(placed: Tensor, place: Tensor, both: Tensor | None, seen: Tensor, column: Tensor | None) -> Tensor:
    """B H Q K, added to the scores: a term for the distance, a term for the segment, and minus infinity if not seen."""
    seen = seen[:, None]
    score = slid(placed @ place.transpose(2, 3), seen.shape[3], column)
    if both is not None:
        score = score + torch.where(seen == 1, both[..., :1], both[..., 1:])
    return (score / math.sqrt(placed.shape[3])).masked_fill(seen == 0, -math.inf)


def slid(scores: Tensor, keys: int, column: Tensor | None) -> Tensor:
    """The scores of distances, B H Q L, as scores of keys, B H Q K. Column c of the input is the distance K - 1 - c. A
    distance after the last column gives 0.

    `column`: the column of each query's first key; None: the queries are all tokens, in order. In that case nothing is
    copied if all distances have a column."""
    queries, length = scores.shape[2:]
    if column is not None:
        at = column[:, :, None] + torch.arange(keys, device=column.device)
        at = at[:, None].expand(-1, scores.shape[1], -1, -1)
        return scores.gather(3, at.clamp(max=length - 1)).masked_fill(at >= length, 0.0)
    if length < queries + keys:
        scores, length = F.pad(scores, (0, queries + keys - length)), queries + keys
    flat = scores.flatten(2)[..., queries - 1 : queries - 1 + queries * (length - 1)]
    return flat.unflatten(2, (queries, length - 1))[..., :keys]
