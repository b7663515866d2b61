"""Read sentences of words with tags: JSON lines with `tokens` and `tags`, or CoNLL columns (a word and its tag in a line)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unmask.data.marks import Mark
from unmask.errors import require
from unmask.tasks._rows import DOCUMENT, format_of, lines_of_file, read_rows

COLUMNS = (".conll", ".txt", ".tsv")  # files with a word in each line and a blank line after each sentence
# Chinese characters and marks: words of them are written without spaces
_HAN = "\u3001-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff"
_WORDS = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+|[^\w\s]")


@dataclass(frozen=True)
class Sentence:
    """Words and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None  # one for each word; None if they are not known
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)  # of each word, in a file of CoNLL columns

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.text,)

    @property
    def text(self) -> str:
        """The words as a text: with spaces between them, but not between Chinese characters."""
        return self._joined()[0]

    @property
    def places(self) -> list[Mark]:
        """Where each word is in the text; the value is the number of the word."""
        begins = self._joined()[1]
        return [Mark(b, b + len(word), i) for i, (b, word) in enumerate(zip(begins, self.words, strict=True))]

    def at(self, place: int) -> str:
        """The name of a word in error messages, with its line."""
        line = re.sub(r"line [\d,]+$", f"line {self.lines[place]:,}", self.where) if self.lines else self.where
        return f"{line}, word {place + 1} ({self.words[place]!r})"

    def _joined(self) -> tuple[str, list[int]]:
        text, begins = "", []
        for word in self.words:
            text += " " if text and not (_is_han(text[-1]) and _is_han(word[0])) else ""
            begins.append(len(text))
            text += word
        return text, begins


def read_sentences(path: Path, *, labelled: bool = True) -> list[Sentence]:
    """The sentences of a file. A .txt file without tags has a text in each line, as for other tasks."""
    if format_of(path) in COLUMNS and (labelled or format_of(path) != ".txt"):
        found = list(_conll(path, labelled))
    elif format_of(path) == ".txt":
        found = [sentence_of(line, f"{path}, line {i:,}") for i, line in lines_of_file(path) if line.strip()]
    else:
        found = [_sentence(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
    require(bool(found), "{path} holds no sentences: give a file with at least one sentence", path=path)
    return found


def sentence_of(text: str, where: str) -> Sentence:
    """A text without tags, cut into words: every Chinese character and every mark is a word."""
    words = tuple(_WORDS.findall(text))
    require(bool(words), "{where}: the text has no words: {text!r:.60}", where=where, text=text)
    return Sentence(words, None, where, {"text": text})


def _sentence(row: Mapping[str, Any], where: str, labelled: bool) -> Sentence:
    if not labelled and "tokens" not in row and isinstance(row.get("text"), str):
        return replace(sentence_of(row["text"], where), row=row)
    known = ", ".join(map(repr, row)) or "none"
    for name in ("tokens", "tags") if labelled else ("tokens",):
        require(
            name in row,
            '{where}: a sentence needs "tokens"{tags}; the columns are {known}: rename the columns of the file',
            where=where,
            tags=' and "tags"' if labelled else ' or "text"',
            known=known,
        )
        require(
            isinstance(row[name], list) and all(isinstance(one, str) for one in row[name]),
            '{where}: "{name}" must be a list of strings, got {value!r:.60}',
            where=where,
            name=name,
            value=row[name],
        )
    words, tags = row["tokens"], row["tags"] if labelled else None
    require(
        tags is None or len(words) == len(tags),
        "{where}: there are {words} tokens and {tags} tags: give one tag for each token",
        where=where,
        words=len(words),
        tags=len(tags or ()),
    )
    require(bool(words), "{where}: the sentence has no tokens: leave it out", where=where)
    return _checked(Sentence(tuple(words), None if tags is None else tuple(tags), where, row))


def _checked(sentence: Sentence) -> Sentence:
    for place, word in enumerate(sentence.words):
        require(bool(word.strip()), "{where}: the token is empty: leave it and its tag out", where=sentence.at(place))
    for place, tag in enumerate(sentence.tags or ()):
        require(bool(tag.strip()), "{where}: the tag is empty: write O for no tag", where=sentence.at(place))
    return sentence


def _conll(path: Path, labelled: bool) -> Iterator[Sentence]:
    held: list[tuple[int, list[str]]] = []
    for number, line in [*lines_of_file(path), (0, "")]:
        fields = line.split("\t") if "\t" in line else line.split()
        if fields and fields[0].strip() and fields[0] != DOCUMENT:
            require(
                len(fields) >= 2 or not labelled,
                "{path}, line {number:,}: the line has a word and no tag, {line!r:.60}: write the word, a space or a tab, and "
                "the tag, and leave a blank line between sentences",
                path=path,
                number=number,
                line=line,
            )
            held.append((number, [one.strip() for one in fields]))
        elif held:
            yield _of_lines(path, held, labelled)
            held = []


def _of_lines(path: Path, held: Sequence[tuple[int, list[str]]], labelled: bool) -> Sentence:
    words = tuple(fields[0] for _, fields in held)
    tags = tuple(fields[-1] for _, fields in held) if labelled else None
    row: dict[str, Any] = {"tokens": list(words)} | ({} if tags is None else {"tags": list(tags)})
    where, lines = f"{path}, line {held[0][0]:,}", tuple(number for number, _ in held)
    return _checked(Sentence(words, tags, where, row, lines))


def _is_han(character: str) -> bool:
    return re.match(f"[{_HAN}]", character) is not None
