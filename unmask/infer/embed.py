"""Embed: one vector per text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from unmask.data.examples import Laid, Text
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import Noted, laid_out, passes
from unmask.predict.label import means, summaries


def embed(
    model: Model, texts: Sequence[str], *, pool: Literal["mean", "summary"] = "mean", layer: int = -1
) -> Noted[np.ndarray]:
    """Texts x width: the mean of a layer's vectors, or its vector at the summary token. Layer 0 is the embeddings."""
    require(bool(texts), "there are no texts to embed: give at least one")
    layers = model.recipe.system.backbone.layers + 1
    require(
        -layers <= layer < layers,
        "layer must be between {layers} and {layers_2}, got {layer}",
        layers=-layers,
        layers_2=layers - 1,
        layer=layer,
    )
    require(pool in ("mean", "summary"), "pool must be mean or summary, got {pool!r}", pool=pool)
    gather = means if pool == "mean" else summaries
    out: np.ndarray | None = None
    rows, notes = laid_out(model, Laid([Text(text) for text in texts]))
    for chosen, batch, hidden in passes(model, rows):
        vectors = gather(hidden.layers[layer], batch).float().cpu().numpy()
        if out is None:
            out = np.empty((len(texts), vectors.shape[1]), np.float32)
        out[chosen] = vectors
    assert out is not None
    return Noted(out, notes)
