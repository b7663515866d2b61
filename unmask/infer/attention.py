"""Attention: how much each token reads from every other token, by layer and head.

The weights are computed again from what each layer gives to its kernel. So the networks need no code for this, and
training does not become slower."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from unmask.data.examples import Laid, Text
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import Noted, batches, laid_out


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of one text."""

    tokens: tuple[str, ...]  # the tokens that the network reads, special tokens too
    layers: tuple[Tensor, ...]  # for each layer H T T: head, query (the token that reads), key (the token that is read)


@torch.no_grad()
def attention(model: Model, text: str) -> Noted[AttentionWeights]:
    """The attention weights of every layer and head. Each row of a matrix sums to 1."""
    rows, notes = laid_out(model, Laid([Text(text)]))
    model.system.eval()
    ((_, batch),) = batches(model, rows)
    count = int(batch.real[0].sum())
    with _Watch(batch.shape[1]) as watch:
        model.system.look(batch)
    require(
        bool(watch.found),
        "{folder} shows no attention weights: it has no attention layers, or a kernel keeps them to itself (on a GPU, or with "
        "--fast): open it with device cpu and without fast",
        folder=model.folder,
    )
    names = tuple(model.tokenizer.readable(int(i)) for i in batch.ids[0, :count])
    layers = tuple(weights[0, :, :count, :count].float().cpu() for weights in watch.found)
    return Noted(AttentionWeights(names, layers), notes)


class _Watch(TorchFunctionMode):
    """Keeps the weights of every attention layer that runs while it is open. A layer either calls PyTorch's kernel, or
    computes a softmax of scores, B H T T."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.found = length, list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is F.scaled_dot_product_attention:
            self._keep(_weights(*args, **(kwargs or {})))
        elif func is torch.Tensor.softmax:
            self._keep(result)
        return result

    def _keep(self, weights: Tensor) -> None:
        if weights.dim() == 4 and weights.shape[2:] == (self.length, self.length):
            self.found.append(weights)


def _weights(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0
) -> Tensor:
    """B H T T, the weights inside `scaled_dot_product_attention`. `attn_mask`: True where a key is seen, or added to scores."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        seen = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if seen else scores + attn_mask
    return scores.softmax(-1)
