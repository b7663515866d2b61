"""Attention with a mask for every pair of tokens: PyTorch's fused kernel, or plain matrix products where they are faster.

On a CPU the fused kernel is slow in bfloat16, above all backwards: with rows of 128 tokens it takes three to four times as long
as the products (docs/results.md, "Training on two CPU cores").
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

PLAIN_KEYS = 1024  # plain products keep the scores of all pairs; with more keys they would take too much memory


def dense_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, dropout: float = 0.0) -> Tensor:
    """B H Q d. `mask`: True where a query sees a key, or what is added to the scores. `dropout`: of attention weights."""
    if query.device.type == "cpu" and query.dtype == torch.bfloat16 and key.shape[2] <= PLAIN_KEYS:
        return plain_attention(query, key, value, mask, dropout=dropout)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def plain_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The same in plain matrix products."""
    rows, heads, queries, _ = query.shape
    scaled = query * (1 / math.sqrt(query.shape[3]))
    scores = torch.bmm(scaled.flatten(0, 1), key.flatten(0, 1).transpose(1, 2)).unflatten(0, (rows, heads))  # B H Q K
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
    weights = (scores + mask).softmax(-1)
    if dropout:
        weights = F.dropout(weights, dropout)
    return torch.bmm(weights.flatten(0, 1).to(value.dtype), value.flatten(0, 1)).unflatten(0, (rows, heads))
