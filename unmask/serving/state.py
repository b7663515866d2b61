"""The routes about the service itself: /health, /metrics."""

from __future__ import annotations

from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from unmask.serving.call import Call, Route


async def health(call: Call) -> Any:
    return {"status": "ok", "models": call.service.models.names()}


async def metrics(call: Call) -> Any:
    return Response(call.service.metrics.page(), headers={"content-type": CONTENT_TYPE_LATEST})


ROUTES = (
    Route("/health", health, "Whether the service answers"),
    Route("/metrics", metrics, "Numbers for Prometheus", media=("text/plain",)),
)
OPEN = frozenset({"/health"})  # answered without a key
ALWAYS = frozenset({"/health", "/metrics", "/models/load", "/models/unload"})  # answered when the service is busy too
