"""The table of all routes."""

from __future__ import annotations

from unmask.serving import hf_tasks, openai, state
from unmask.serving.call import Route
from unmask.serving.state import OPEN

ROUTES: tuple[Route, ...] = (*openai.ROUTES, *hf_tasks.ROUTES, *state.ROUTES)

__all__ = ["OPEN", "ROUTES"]
