"""ContractBroken: the one error that a contract raises, and how it is raised."""

from __future__ import annotations


class ContractBroken(AssertionError):
    """A recipe lacks a property that every recipe must have. The message says what was expected and what was found."""


def expect(condition: object, message: str) -> None:
    """Raise the message as ContractBroken unless the condition holds."""
    if not condition:
        raise ContractBroken(message)
