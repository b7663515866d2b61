"""UserError: an error that a user causes and can fix. It says what is wrong, what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class UserError(ValueError):
    """A mistake in the input. The command line prints it as one line; a program may catch it.

    The message is a template with named values, such as UserError("budget must be over 0, got {budget}", budget=-1), so
    that it can be translated. Without values the text is taken as it is."""

    def __init__(self, template: str, **values: Any) -> None:
        self.template, self.values = template, values
        super().__init__(template.format(**values) if values else template)

    def of_track(self, name: str) -> UserError:
        """The same error, which names its track; advice with the value `track` names it too."""
        plain = self.template if self.values else self.template.replace("{", "{{").replace("}", "}}")
        return UserError(f"the track {{track!r}}: {plain}", **self.values | {"track": name})


class Notice(UserWarning):
    """Something the user should know, while the job continues: a warning in Python, a note on the command line."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for an unknown name; it lists the nearest known names."""
    known = sorted(known)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return UserError("unknown {kind} {name!r}: did you mean {near}?", kind=kind, name=name, near=" or ".join(near))
    return UserError("unknown {kind} {name!r}: known: {known}", kind=kind, name=name, known=", ".join(known))


def require(condition: bool, template: str, **values: Any) -> None:
    """Raise a UserError unless the condition holds."""
    if not condition:
        raise UserError(template, **values)
