"""Attention: how much each token reads from every other token, by layer and head.

The weights are computed again from what each layer gives to its kernel. So the networks need no code for this, and
training does not become slower."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from unmask.axes import gives_of
from unmask.data.examples import Laid, Text
from unmask.errors import require
from unmask.infer.batches import left_padded, one_more
from unmask.infer.decoder_token import DecoderToken
from unmask.infer.model import Model
from unmask.infer.passes import Noted, batches, laid_out


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of one text."""

    tokens: tuple[str, ...]  # the tokens that the network reads, special tokens too
    layers: tuple[Tensor, ...]  # for each layer H T T: head, query (the token that reads), key (the token that is read)
    # the tokens that are read, if they are those of another text: each layer is then H T S
    source: tuple[str, ...] = ()


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
        bool(watch.found) or "decoder" not in gives_of(model.recipe.system.backbone),
        "the encoder of {folder} has no attention; its decoder reads from the source: give a second text, the TARGET that it writes",
        folder=model.folder,
    )
    require(
        bool(watch.found),
        "{folder} shows no attention weights: it has no attention layers, or a kernel keeps them to itself (on a GPU, or with "
        "--fast): open it with device cpu and without fast",
        folder=model.folder,
    )
    names = tuple(model.tokenizer.readable(int(i)) for i in batch.ids[0, :count])
    layers = tuple(weights[0, :, :count, :count].float().cpu() for weights in watch.found)
    return Noted(AttentionWeights(names, layers), notes)


@torch.no_grad()
def attention_to_source(model: Model, source: str, target: str) -> Noted[AttentionWeights]:
    """How much each token of a text that a decoder writes reads from each token of its source. A row belongs to the token that
    is written from what was read."""
    require(
        "decoder" in gives_of(model.recipe.system.backbone),
        "{folder} has no decoder that reads a source: leave TARGET out, or give a run of a recipe with a decoder, such as "
        "transformer or cove",
        folder=model.folder,
    )
    require(
        bool(source.strip() and target.strip()), "the source and the target must be texts, and one is empty: give both"
    )
    step = DecoderToken(model)
    written = [*model.tokenizer.encode(target), step.end]
    read, room = step.source(model.tokenizer.encode(source), len(written))
    given = [*step.first, *written][:-1]
    batch = left_padded([read], model.tokenizer.vocabulary.pad).to(model.device)
    # a cache of another length than the source, so that both kinds of weights have different shapes
    state = model.system.read_source(batch, len(given) + (2 if len(given) + 1 == len(read) else 1))
    layers: list[list[Tensor]] = []
    for token in given:
        with _Watch(1, len(read)) as watch:
            _, state = model.system.read_on(one_more(torch.tensor([token], device=model.device)), state)
        layers.append(watch.found)
    names = [tuple(model.tokenizer.readable(i) for i in ids) for ids in (written, read)]
    rows = layers[len(step.first) - 1 :]
    found = tuple(torch.cat([row[0].float().cpu() for row in layer], 1) for layer in zip(*rows, strict=True))
    notes = Counter(
        {f"sources longer than {room} tokens, cut": 1} if len(model.tokenizer.encode(source)) > room else {}
    )
    return Noted(AttentionWeights(names[0], found, names[1]), notes)


class _Watch(TorchFunctionMode):
    """Keeps the weights of every attention layer that runs while it is open. A layer either calls PyTorch's kernel, or
    computes a softmax of scores, B H T T; without heads, B T T. `keys`: how many tokens are read, if not `length`."""

    def __init__(self, length: int, keys: int | None = None) -> None:
        super().__init__()
        self.shape, self.found = (length, keys or length), list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is F.scaled_dot_product_attention:
            self._keep(_weights(*args, **(kwargs or {})))
        elif func is torch.Tensor.softmax:
            self._keep(result)
        return result

    def _keep(self, weights: Tensor) -> None:
        if weights.dim() in (3, 4) and weights.shape[-2:] == self.shape:
            self.found.append(weights if weights.dim() == 4 else weights[:, None])


def _weights(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0
) -> Tensor:
    """B H T T, the weights inside `scaled_dot_product_attention`. `attn_mask`: True where a key is seen, or added to scores."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        seen = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if seen else scores + attn_mask
    return scores.softmax(-1)
