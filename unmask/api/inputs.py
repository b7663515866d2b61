"""Texts that a user gives to a model: in a file, as lines, or typed on the command line."""

from __future__ import annotations

from pathlib import Path

from unmask.errors import UserError
from unmask.progress import Tell, tell_notes
from unmask.tasks import _labelled
from unmask.tasks._rows import SUFFIXES
from unmask.text.documents import suffixes


def read_texts(file: str | Path, *, tell: Tell = None) -> list[str]:
    """The texts of a file: the lines of a .txt file without blank ones, or the field text of .jsonl or .csv."""
    found, notes = _labelled.read_texts(file)
    tell_notes(notes, tell)
    return [one.a for one in found]


def read_lines(content: str, name: str, *, tell: Tell = None) -> dict[str, str]:
    """The lines of a text without blank ones, by what errors call each. `name`: what errors call the text."""
    found, notes = _labelled.lines_of(content.replace("\r\n", "\n"), name)
    tell_notes(notes, tell)
    return {line.where: line.text.a for line in found}


def file_named(argument: str) -> Path | None:
    """The file that an argument names; None if it is a text. What looks like a file must exist."""
    path = Path(argument)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError):  # too long for the name of a file, or with a character that none may have
        return None
    if suffixes(path)[0] in SUFFIXES and not any(character.isspace() for character in argument):
        raise UserError(
            ("no such file: {path}; to label this text itself, pipe it: echo TEXT | unmask predict RUN -"), path=path
        )
    return None
