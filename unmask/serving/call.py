"""Call: one request on its way through a route. Route: an entry of the table of routes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unmask.serving.service import Service

R = TypeVar("R")


@dataclass(frozen=True)
class Call:
    """A request: the service, its body as a record, and the names in its path."""

    service: Service
    body: Any = None
    path: dict[str, str] = field(default_factory=dict)
    id: str = ""  # of the request

    @property
    def model(self) -> str | None:
        """The name of the model in the path or in the body."""
        found: str | None = self.path.get("model") or getattr(self.body, "model", None)
        return found


@dataclass(frozen=True)
class Stream:
    """An answer that is sent piece by piece, as server-sent events."""

    events: AsyncIterator[Any]  # each becomes JSON


Answer = Any  # JSON, a Stream, or a starlette Response


@dataclass(frozen=True)
class Route:
    """One route: its path, the record of its body, and the function that answers."""

    path: str
    answer: Callable[[Call], Awaitable[Answer]]
    summary: str
    body: type | None = None  # None: GET without a body
    group: str = "unmask"  # whose interface it is
    media: tuple[str, ...] = ("application/json",)  # of the answer

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


MANY = 32  # parts of an answer: JSON of more is made in a thread


def has_many(value: Any) -> bool:
    """Whether an answer is large: a list with many parts, or an object that holds one."""
    several = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(one, list) and len(one) > MANY for one in several)


def as_json_in_pieces(value: Any) -> bytes:
    """The same as `as_json`, made part by part: json.dumps lets no other thread run until it has finished."""
    if isinstance(value, dict):
        return b"{%s}" % b",".join(as_json(name) + b":" + as_json_in_pieces(one) for name, one in value.items())
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return b"[%s]" % b",".join(map(as_json_in_pieces, value))
    return as_json(value)


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
