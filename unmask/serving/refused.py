"""Refused: a request that is not answered. It has an HTTP status, a cause for the metrics, and what the client should do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# the name of each status in the bodies of Text Embeddings Inference, and in the label of the metrics
CAUSES: Final[dict[int, str]] = {
    401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 408: "too_slow", 409: "conflict",
    413: "too_large", 415: "media_type", 422: "validation", 429: "overloaded", 499: "client_left", 500: "internal",
    503: "unavailable",
}  # fmt: skip


class Refused(Exception):
    """The reason why a request is not answered."""

    def __init__(
        self, status: int, message: str, *, limit: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.limit, self.headers = status, message, limit, dict(headers or {})

    @property
    def cause(self) -> str:
        return CAUSES.get(self.status, "error")


def content(error: Refused, path: str) -> dict[str, Any]:
    """The body of the answer: OpenAI's shape for its routes, otherwise that of Text Embeddings Inference."""
    limit = {"limit": error.limit} if error.limit else {}
    if path.startswith("/v1/"):
        return {"error": {"message": error.message, "type": error.cause, "param": None, "code": error.status} | limit}
    return {"error": error.message, "error_type": error.cause} | limit
