"""Read questions about a text: SQuAD and CMRC files (.json) as they are, or JSON lines with `question`, `context`, `answers`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask.counted import counted
from unmask.errors import UserError, require
from unmask.tasks._rows import format_of, read_rows, readable

LISTED = 5  # answers at a wrong place that are named
QUOTED = 40  # characters of each that are shown


@dataclass(frozen=True)
class Asked:
    """A question about a text, and the right answers."""

    question: str
    context: str
    answers: tuple[str, ...] | None = None  # the right ones; (): the text has none; None: not known
    place: tuple[int, int] | None = (
        None  # the characters of the answer to learn; None: there is none, or it is not found
    )
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.question,)

    @property
    def known(self) -> bool:
        """Whether a model can learn from it: its answer is in the text, or it is known that there is none."""
        return self.answers is not None and (not self.answers or self.place is not None)


def read_questions(path: Path, *, labelled: bool, strict: bool) -> tuple[list[Asked], Counter[str]]:
    """The questions of a file, and notes on answers that are not where the file says. `strict`: refuse these."""
    rows = _squad(path) if format_of(path) == ".json" else ((f"{path}, line {n:,}", row) for n, row in read_rows(path))
    misplaced: list[str] = []
    found = [_asked(row, where, labelled, misplaced) for where, row in rows]
    require(bool(found), "{path} holds no questions: give a file with at least one question", path=path)
    misplaced = list(dict.fromkeys(misplaced))  # several people may have given the same answer
    if not misplaced:
        return found, Counter()
    first = "; ".join(misplaced[:LISTED])
    if strict:
        raise UserError(
            "{path}: {several}: {first}: correct the start, or leave --strict out",
            path=path,
            several=counted(len(misplaced), "answers are not where the file says"),
            first=first,
        )
    notes = Counter({f"answers are not where the file says, and were looked for in the text: {first}": len(misplaced)})
    lost = sum(not asked.known for asked in found if asked.answers is not None)
    return found, notes + Counter({"questions are not learned from: their answer is nowhere in the text": lost})


def _asked(row: Mapping[str, Any], where: str, labelled: bool, misplaced: list[str]) -> Asked:
    for name in ("question", "context"):
        require(
            isinstance(row.get(name), str) and bool(row[name].strip()),
            '{where}: an example needs "question" and "context", both texts and not empty; got {name}={value!r:.60}, and the '
            "columns are {known}",
            where=where,
            name=name,
            value=row.get(name),
            known=", ".join(map(repr, row)),
        )
    question, context = row["question"], row["context"]
    if not labelled:
        return Asked(question, context, None, None, where, row)
    answers = [] if row.get("is_impossible") else [_answer(one, where) for one in _listed(row, where)]
    places = [_place(text, start, context, where, misplaced) for text, start in answers]
    return Asked(
        question,
        context,
        tuple(text for text, _ in answers),
        next((place for place in places if place is not None), None),
        where,
        row,
    )


def _listed(row: Mapping[str, Any], where: str) -> Sequence[Any]:
    """The answers of a row: a list of them, or lists of their texts and places, as Hugging Face's data sets write SQuAD."""
    answers = row.get("answers")
    texts, starts = _of(answers, "text"), _of(answers, "start", "answer_start")
    if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
        return [{"text": text, "start": start} for text, start in zip(texts, starts, strict=True)]
    require(
        isinstance(answers, list),
        '{where}: an example needs "answers", a list such as [{{"text": ..., "start": 17}}], or two lists of equal length such as '
        '{{"text": [...], "answer_start": [...]}}, empty if there is no answer; got {answers!r:.60}',
        where=where,
        answers=answers,
    )
    assert isinstance(answers, list)
    return answers


def _answer(value: Any, where: str) -> tuple[str, int | None]:
    """The text of an answer and its first character, if the file has it. CMRC's own files have only texts."""
    text, start = (value, None) if isinstance(value, str) else (_of(value, "text"), _of(value, "start", "answer_start"))
    require(
        isinstance(text, str)
        and bool(text)
        and (start is None or (isinstance(start, int) and not isinstance(start, bool))),
        '{where}: an answer is {{"text": ..., "start": the number of its first character}}, got {value!r:.60}',
        where=where,
        value=value,
    )
    return str(text), start


def _of(value: Any, *names: str) -> Any:
    return next((value[name] for name in names if name in value), None) if isinstance(value, dict) else None


def _place(text: str, start: int | None, context: str, where: str, misplaced: list[str]) -> tuple[int, int] | None:
    """The characters of an answer: where the file says, otherwise the nearest place that has its text; None: no place."""
    if start is not None and start >= 0 and context[start : start + len(text)] == text:
        return start, start + len(text)
    if start is not None:
        there = context[max(0, start) : max(0, start) + len(text)]
        misplaced.append(f"{where}: {_quoted(text)} is said to start at {start}, where the text has {_quoted(there)}")
    found = [i for i in range(len(context) - len(text) + 1) if context.startswith(text, i)]
    if not found:
        return None
    begin = min(found, key=lambda i: abs(i - (start or 0)))
    return begin, begin + len(text)


def _quoted(text: str) -> str:
    """A text in quotes; of a long one, its beginning."""
    return repr(text if len(text) <= QUOTED else f"{text[:QUOTED]} ...")


def _squad(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The questions of a SQuAD file, or of CMRC 2018 in its own format, as rows."""
    with readable(path) as file:
        try:
            content = json.load(file)
            paragraphs = (
                [(p["context"], p["qas"]) for article in content["data"] for p in article["paragraphs"]]
                if isinstance(content, dict)
                else [(p["context_text"], p["qas"]) for p in content]
            )
            asked = [(context, dict(question)) for context, questions in paragraphs for question in questions]
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise UserError(
                '{path} is neither SQuAD nor CMRC JSON: SQuAD has {{"data": [{{"paragraphs": [{{"context": ..., "qas": [...]}}]}}]}}; '
                "for other formats give JSON lines (.jsonl)",
                path=path,
            ) from None
    for number, (context, row) in enumerate(asked, 1):
        renamed = {"query_text": "question", "query_id": "id"}
        values: dict[str, Any] = {renamed.get(str(name), str(name)): value for name, value in row.items()}
        yield f"{path}, question {values.get('id', number)}", values | {"context": context}
