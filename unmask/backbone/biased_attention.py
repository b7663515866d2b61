"""Biased attention: relative attention in plain operations, for a CPU, and what the fused kernels are tested against.

The scores for distances and segments are a bias, B H Q K.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def look(
    content: Tensor, key_value: Tensor, placed: Tensor, place: Tensor, both: Tensor | None, seen: Tensor,
    column: Tensor | None, dropped: float = 0.0,
) -> Tensor:  # fmt: skip
    """B H Q d, what the queries gather; zeros where nothing is seen. The arguments are those of fused_attention.look.

    `dropped`: the share of attention weights that are dropped."""
    key, value = key_value.chunk(2, 1)
    blind = (seen == 0).all(-1, keepdim=True)  # the first token of an order, with an empty memory
    bias = bias_of(placed, place, both, seen.masked_fill(blind, 1), column)  # a softmax over nothing gives no number
    found = F.scaled_dot_product_attention(content, key, value, attn_mask=bias, dropout_p=dropped)
    return found.masked_fill(blind[:, None], 0.0)


def bias_of(placed: Tensor, place: Tensor, both: Tensor | None, seen: Tensor, column: Tensor | None) -> Tensor:
    """B H Q K, what is added to the scores: for distances, for segments, and minus infinity where a key is not seen."""
    seen = seen[:, None]
    score = slid(placed @ place.transpose(2, 3), seen.shape[3], column)
    if both is not None:
        score = score + torch.where(seen == 1, both[..., :1], both[..., 1:])
    return (score / math.sqrt(placed.shape[3])).masked_fill(seen == 0, -math.inf)


def slid(scores: Tensor, keys: int, column: Tensor | None) -> Tensor:
    """B H Q K from B H Q L: column c is distance K - 1 - c; distances beyond the last column give 0.

    `column`: the column of each query's first key; none: the queries are all tokens, in order, and if all distances are
    there, nothing is copied."""
    queries, length = scores.shape[2:]
    if column is not None:
        at = column[:, :, None] + torch.arange(keys, device=column.device)
        at = at[:, None].expand(-1, scores.shape[1], -1, -1)
        return scores.gather(3, at.clamp(max=length - 1)).masked_fill(at >= length, 0.0)
    if length < queries + keys:
        scores, length = F.pad(scores, (0, queries + keys - length)), queries + keys
    flat = scores.flatten(2)[..., queries - 1 : queries - 1 + queries * (length - 1)]
    return flat.unflatten(2, (queries, length - 1))[..., :keys]
