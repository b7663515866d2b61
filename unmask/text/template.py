"""Prompt templates: text in which {field} is replaced by a value of an example; {{ and }} are literal braces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from unmask.errors import UserError, require

CHOICES = re.compile(r"choices[:：](.*)")  # also with the full-width colon
_COMMA = re.compile("[,，、]")


@dataclass(frozen=True)
class Choice:
    """One of a fixed set of answers: the label in the file, and the words for it in the prompt."""

    label: str
    words: str


@dataclass(frozen=True)
class Template:
    """Pieces of literal text, each with the field that follows it, or None. White space at the end counts."""

    pieces: tuple[tuple[str, str | None], ...]
    choices: tuple[Choice, ...] = ()  # from a first line "choices: good, bad" or "choices: 1=good, 0=bad"

    @classmethod
    def read(cls, prompt: str | Path) -> Template:
        """Read a template from a file, or from its text. The last line end of a file is not part of it."""
        if isinstance(prompt, Path) or ("\n" not in prompt and Path(prompt).is_file()):
            require(Path(prompt).is_file(), "no such template: {prompt}", prompt=prompt)
            try:
                text = Path(prompt).read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise UserError(
                    "{prompt} is not UTF-8 at byte offset {start:,}: convert it to UTF-8",
                    prompt=prompt,
                    start=error.start,
                ) from None
            return cls.parse(text.removesuffix("\n"))
        require(
            "{" in prompt,
            "{prompt!r:.60} is neither a file nor a template: a template needs a {{field}}",
            prompt=prompt,
        )
        return cls.parse(prompt)

    @classmethod
    def parse(cls, text: str) -> Template:
        first, line_end, rest = text.partition("\n")
        found = CHOICES.fullmatch(first.strip())
        choices = _choices(found.group(1)) if found and line_end else ()
        try:
            pieces = tuple(_piece(*piece) for piece in Formatter().parse(rest if choices else text))
        except ValueError as error:
            raise UserError(
                "the template cannot be read ({error}): write {{{{ or }}}} for a literal brace", error=error
            ) from None
        require(bool(pieces), "the template is empty: write a text with {field} where a value goes")
        return cls(pieces, choices)

    def fill(self, values: Mapping[str, Any], where: str) -> str:
        """The prompt of one example; `where`: the place of the example, for errors."""
        parts = []
        for text, field in self.pieces:
            parts.append(text)
            if field is None:
                continue
            require(
                field in values,
                "{where}: the template needs {{{field}}}, which the example lacks; it has {values}",
                where=where,
                field=field,
                values=", ".join(values),
            )
            value = values[field]
            require(
                isinstance(value, str | int | float) and not isinstance(value, bool),
                "{where}: {{{field}}} must be a text or a number, got {value!r:.40}",
                where=where,
                field=field,
                value=value,
            )
            parts.append(str(value))
        return "".join(parts)


def _piece(text: str, field: str | None, form: str | None, conversion: str | None) -> tuple[str, str | None]:
    plain = field is None or (bool(re.fullmatch(r"[\w-]+", field)) and not form and not conversion)
    shown = f"{{{field}{'!' + conversion if conversion else ''}{':' + form if form else ''}}}"
    require(
        plain,
        ("the template has {shown}: write only the name of a field in braces, and {{{{ or }}}} for a literal brace"),
        shown=shown,
    )
    return text, field


def _choices(text: str) -> tuple[Choice, ...]:
    found = []
    for part in _COMMA.split(text):
        label, equals, words = (word.strip() for word in part.partition("="))
        require(
            bool(label) and bool(words or not equals), "the template has an empty choice: {text!r}", text=text.strip()
        )
        found.append(Choice(label, words or label))
    require(
        len(found) >= 2,
        "the template needs two choices or more, got {text!r}: separate them by commas",
        text=text.strip(),
    )
    for name in ("label", "words"):
        names = [getattr(choice, name) for choice in found]
        require(len(set(names)) == len(names), "the template names a choice twice: {text!r}", text=text.strip())
    return tuple(found)
