"""The table of all routes, and the route that describes them."""

from __future__ import annotations

from typing import Any

from unmask.serving import completions, explaining, hf_tasks, openai, own, page_routes, state, tei
from unmask.serving.call import Call, Route
from unmask.serving.openapi import description
from unmask.serving.state import ALWAYS, OPEN

__all__ = ["ALWAYS", "OPEN", "ROUTES", "openapi"]


async def _describe(call: Call) -> Any:
    return openapi()


def openapi() -> dict[str, Any]:
    """The description of all routes."""
    return description(ROUTES)


ROUTES: tuple[Route, ...] = (
    *openai.ROUTES, *completions.ROUTES, *hf_tasks.ROUTES, *tei.ROUTES, *own.ROUTES, *explaining.ROUTES, *page_routes.ROUTES, *state.ROUTES,
    Route("/openapi.json", _describe, "This description"),
)  # fmt: skip
