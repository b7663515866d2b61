"""OpenAI's routes of models and vectors: /v1/models, /v1/embeddings."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unmask.serving.call import Call, Route
from unmask.serving.models import Served
from unmask.serving.service import Input, as_texts


@dataclass(frozen=True)
class Embeddings:
    """The body of /v1/embeddings."""

    model: str
    input: Input
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    truncate: bool = False  # cut a text that is too long; otherwise it is refused
    user: str = ""  # read by no one


async def models(call: Call) -> dict[str, Any]:
    return {"object": "list", "data": [_about(served) for served in call.service.models.all()]}


async def model(call: Call) -> dict[str, Any]:
    return _about(call.service.models.get(call.path["model"]))


def _about(served: Served) -> dict[str, Any]:
    recipe = served.model.recipe
    own = {"recipe": recipe.name, "size": recipe.size, "uses": list(served.uses), "max_model_len": served.model.length}
    return {"id": served.name, "object": "model", "created": served.created, "owned_by": "unmask"} | own


async def embeddings(call: Call) -> dict[str, Any]:
    body: Embeddings = call.body
    served = call.service.models.get(body.model)
    ids = await call.service.tokens(served, as_texts(body.input), truncate=body.truncate)
    vectors = await call.service.embed(served, ids, dims=body.dimensions)
    packed = body.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": number, "embedding": _packed(row) if packed else row.tolist()}
        for number, row in enumerate(vectors)
    ]
    read = sum(map(len, ids))
    usage = {"prompt_tokens": read, "total_tokens": read}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


def _packed(vector: np.ndarray) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


ROUTES = (
    Route("/v1/models", models, "The models", group="OpenAI"),
    Route("/v1/models/{model}", model, "One model", group="OpenAI"),
    Route("/v1/embeddings", embeddings, "One vector for each text", Embeddings, "OpenAI"),
)
