"""Embed: one vector per text."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.axes import gives_of
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import Noted
from unmask.infer.text_batches import Texts, text_batches
from unmask.predict.label import means, summaries
from unmask.predict.text_vectors import VECTORS

Way = Callable[[Hidden, Batch], Tensor]  # from the vectors of tokens to E D, one vector per text


def embed(
    model: Model, texts: Texts, *, pool: Literal["mean", "summary"] | None = None, layer: int | None = None,
    dims: int | None = None,
) -> Noted[np.ndarray]:  # fmt: skip
    """Texts x width. A model that was adapted to embed makes its own vectors, of length 1. Of any other model, or if `pool`
    or `layer` is given: the mean of a layer's vectors, or its vector at the summary token; layer 0 is the embeddings.

    `texts`: texts, or their token ids without special tokens. `dims`: only the first dimensions of the model's own vectors,
    again of length 1."""
    require(bool(texts), "there are no texts to embed: give at least one")
    own = makes_vectors(model) and pool is None and layer is None
    way, notes = (
        (_own(model, dims), _not_trained(model, dims)) if own else (_of_layer(model, pool, layer, dims), Counter())
    )
    batches, cut = text_batches(model, texts)
    model.system.eval()
    found: list[tuple[np.ndarray, Tensor]] = []
    out: np.ndarray | None = None
    with torch.inference_mode(), _precision(model, own):
        for chosen, batch in batches:
            found.append((chosen, way(model.system.look(batch), batch).float()))
            # a GPU works on the next batch while the vectors of the one before are copied
            if len(found) > 1:
                out = _put(out, *found.pop(0), len(texts))
        for one in found:
            out = _put(out, *one, len(texts))
    assert out is not None
    return Noted(out, cut + notes)


def _precision(model: Model, own: bool) -> contextlib.AbstractContextManager[Any]:
    """bfloat16 on a GPU for vectors that are compared; what a layer holds is read as it is."""
    device = torch.device(model.device).type
    return torch.autocast(device, torch.bfloat16) if own and device == "cuda" else contextlib.nullcontext()


def _put(out: np.ndarray | None, chosen: np.ndarray, vectors: Tensor, count: int) -> np.ndarray:
    """The array of all vectors, with those of the chosen texts."""
    out = np.empty((count, vectors.shape[1]), np.float32) if out is None else out
    out[chosen] = vectors.cpu().numpy()
    return out


def makes_vectors(model: Model) -> bool:
    """Whether a model was adapted to make vectors of texts."""
    return VECTORS in gives_of(model.recipe.predict)


def width_of(model: Model, dims: int | None) -> int:
    """The number of dimensions of a model's own vectors; with `dims`, after they are cut."""
    width = model.recipe.system.backbone.width
    require(
        dims is None or 1 <= dims <= width,
        "dims must be between 1 and the width of the model, {width}, got {dims}",
        width=width,
        dims=dims,
    )
    return dims or width


def _own(model: Model, dims: int | None) -> Way:
    """The model's own pooling; vectors of length 1."""
    head: Any = model.head(VECTORS, "embed")
    width = width_of(model, dims)
    return lambda hidden, batch: F.normalize(head.decode(hidden, batch)[:, 0, :width], dim=-1)


def _not_trained(model: Model, dims: int | None) -> Counter[str]:
    """A note if the first dimensions were not trained to be vectors of their own."""
    trained = {dim for part in model.recipe.predict.values() for dim in getattr(part, "dims", ())}
    if dims is None or dims in trained | {model.recipe.system.backbone.width}:
        return Counter()
    advice = f"adapt with --set 'dims=({dims},)'"
    return Counter(
        {f"dimensions used, which the model was not trained to use alone: for better vectors, {advice}": dims}
    )


def _of_layer(model: Model, pool: str | None, layer: int | None, dims: int | None) -> Way:
    require(
        dims is None,
        "dims={dims} cuts the vectors of a model that was adapted to embed, without pool and layer: leave dims out, or adapt "
        "{folder} with 'unmask adapt --task embed'",
        dims=dims,
        folder=model.folder,
    )
    layers, chosen = model.recipe.system.backbone.layers + 1, -1 if layer is None else layer
    require(
        chosen in (-1, layers - 1) or model.system.features is None,
        "--fast computes only the last layer, got layer {layer}: leave one of the two out",
        layer=layer,
    )
    chosen = -1 if chosen == layers - 1 else chosen
    require(
        -layers <= chosen < layers,
        "layer must be between {layers} and {layers_2}, got {layer}",
        layers=-layers,
        layers_2=layers - 1,
        layer=layer,
    )
    require(pool in (None, "mean", "summary"), "pool must be mean or summary, got {pool!r}", pool=pool)
    gather = summaries if pool == "summary" else means
    return lambda hidden, batch: gather(hidden.layers[chosen], batch)
