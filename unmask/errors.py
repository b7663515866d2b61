"""UserError: an error that a user causes and can fix. It says what is wrong, what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake in the input. The command line prints it as one line; a program may catch it."""


class Notice(UserWarning):
    """Something the user should know, while the job continues: a warning in Python, a note on the command line."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for an unknown name; it lists the nearest known names."""
    known = sorted(known)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    return UserError(f"unknown {kind} {name!r}: {hint}")


def require(condition: bool, message: str) -> None:
    """Raise the message as a UserError unless the condition holds."""
    if not condition:
        raise UserError(message)
