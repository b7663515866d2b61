"""Limits of the service: what a request may hold, and how many requests are answered at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from unmask.errors import require


@dataclass(frozen=True)
class Limits:
    """What is beyond a limit is refused, and the answer names the limit."""

    body: int = 4_000_000  # bytes of a request
    texts: int = 1_024  # texts of a request; one text and a list of one count alike
    tokens: int | None = None  # tokens of a text; none: what the model reads
    generated: int = 4_096  # new tokens of a text
    requests: int = 256  # requests that wait or are answered; the next one is told to come again
    queue: int = 8_192  # texts that wait, of all requests

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            require(
                value is None or value >= 1,
                "--limit-{name} must be 1 or more, got {value}",
                name=field.name,
                value=value,
            )
