"""ContractBroken: the error that a contract raises."""

from __future__ import annotations


class ContractBroken(AssertionError):
    """A recipe does not have a property that it must have. The message says what was expected and what was found."""


def expect(condition: object, message: str) -> None:
    """Raise ContractBroken with this message if the condition is false."""
    if not condition:
        raise ContractBroken(message)
