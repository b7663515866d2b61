"""The table of all routes, and the route that describes them."""

from __future__ import annotations

from typing import Any

from unmask.serving import hf_tasks, openai, own, page_files, page_routes, state, tei
from unmask.serving.call import Call, Route
from unmask.serving.openapi import description

__all__ = ["OPEN", "ROUTES", "openapi"]

OPEN = state.OPEN | page_files.OPEN  # answered without a key, and when the service is busy


async def _describe(call: Call) -> Any:
    return openapi()


def openapi() -> dict[str, Any]:
    """The description of all routes."""
    return description(ROUTES)


ROUTES: tuple[Route, ...] = (
    *openai.ROUTES, *hf_tasks.ROUTES, *tei.ROUTES, *own.ROUTES, *page_routes.ROUTES, *state.ROUTES, *page_files.ROUTES,
    Route("/openapi.json", _describe, "This description"),
)  # fmt: skip
