"""A prompt with gaps: plain text in which {field} stands for a value of an example, and {{ }} for braces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from unmask.errors import UserError, require

CHOICES = re.compile(r"choices[:：](.*)")  # also with a Chinese keyboard's colon
_COMMA = re.compile("[,，、]")


@dataclass(frozen=True)
class Choice:
    """One of a fixed set of answers: the label in the file, and the words that stand for it."""

    label: str
    words: str


@dataclass(frozen=True)
class Template:
    """Pieces of literal text, each with the field that follows it, if any does. A space at its end is part of it."""

    pieces: tuple[tuple[str, str | None], ...]
    choices: tuple[Choice, ...] = ()  # of a first line "choices: good, bad", or "choices: 1=good, 0=bad"

    @classmethod
    def read(cls, prompt: str | Path) -> Template:
        """From a file, or from the text of a template itself; the line end that closes a file is not part of it."""
        if isinstance(prompt, Path) or ("\n" not in prompt and Path(prompt).is_file()):
            require(Path(prompt).is_file(), f"no such template: {prompt}")
            try:
                text = Path(prompt).read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise UserError(f"{prompt} is not UTF-8 at byte offset {error.start:,}: convert it") from None
            return cls.parse(text.removesuffix("\n"))
        require("{" in prompt, f"{prompt!r:.60} is no file, and no template: it has no {{field}}")
        return cls.parse(prompt)

    @classmethod
    def parse(cls, text: str) -> Template:
        first, line_end, rest = text.partition("\n")
        found = CHOICES.fullmatch(first.strip())
        choices = _choices(found.group(1)) if found and line_end else ()
        try:
            pieces = tuple(_piece(*piece) for piece in Formatter().parse(rest if choices else text))
        except ValueError as error:
            raise UserError(f"the template cannot be read ({error}): double a brace that stands for itself") from None
        require(bool(pieces), "the template is empty: write a text with {field} where a value goes")
        return cls(pieces, choices)

    def fill(self, values: Mapping[str, Any], where: str) -> str:
        """The prompt of one example; `where` it comes from is named in errors."""
        parts = []
        for text, field in self.pieces:
            parts.append(text)
            if field is None:
                continue
            require(
                field in values,
                f"{where}: the template asks for {{{field}}}, which the example has not; it has {', '.join(values)}",
            )
            value = values[field]
            require(
                isinstance(value, str | int | float) and not isinstance(value, bool),
                f"{where}: {{{field}}} must be a text or a number, got {value!r:.40}",
            )
            parts.append(str(value))
        return "".join(parts)


def _piece(text: str, field: str | None, form: str | None, conversion: str | None) -> tuple[str, str | None]:
    plain = field is None or (bool(re.fullmatch(r"[\w-]+", field)) and not form and not conversion)
    shown = f"{{{field}{'!' + conversion if conversion else ''}{':' + form if form else ''}}}"
    require(plain, f"the template has {shown}: write the name of a field alone, and double braces for themselves")
    return text, field


def _choices(text: str) -> tuple[Choice, ...]:
    found = []
    for part in _COMMA.split(text):
        label, equals, words = (word.strip() for word in part.partition("="))
        require(
            bool(label) and bool(words or not equals), f"the template's choices hold an empty one: {text.strip()!r}"
        )
        found.append(Choice(label, words or label))
    require(len(found) >= 2, f"the template needs two choices or more, got {text.strip()!r}: separate them by commas")
    for name in ("label", "words"):
        names = [getattr(choice, name) for choice in found]
        require(len(set(names)) == len(names), f"the template names a choice twice: {text.strip()!r}")
    return tuple(found)
