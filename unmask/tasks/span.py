"""Span: the answer to a question, found in a text. SQuAD or CMRC JSON, or JSON lines `question`, `context`, `answers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.axes import Answered, Graded, Judged, Pretrained, ProbabilityTable, Reader, Window
from unmask.data.examples import Laid, Text
from unmask.data.marks import Mark, Marks
from unmask.errors import UserError, require
from unmask.predict.span import BEGINS, CONTEXT, ENDS, WEIGHT
from unmask.predict.span import Span as Head
from unmask.recipe import Recipe
from unmask.tasks._answer_scores import Scorer, exact, f1, scorer_of
from unmask.tasks._answers import Found
from unmask.tasks._calibrated import Calibrated, probability_table
from unmask.tasks._labelled import fixed
from unmask.tasks._lists import same
from unmask.tasks._questions import Asked, read_questions
from unmask.tasks._recipe import token_norm, usual_pool, with_head
from unmask.tasks._rows import ROWS, format_of
from unmask.tasks._texts import two_texts
from unmask.tasks._training import check_stride
from unmask.text.encode import PLACES

NO_ANSWER = "(no answer)"
BEST = 20  # first and last tokens that are tried in each window, and answers that are kept


@dataclass(frozen=True)
class Span(Calibrated):
    """How a model learns to find answers: it scores each token of the text as the first and as the last of the answer."""

    stride: float = 0.5  # a long text is read in windows, which advance by this share of a window
    longest: int = 30  # most tokens of an answer
    # whether a text may have no answer; none: as in the training examples
    no_answer: bool | None = None
    # the answer is "none" if its score is higher than that of the best span by more than this
    threshold: float = 0.0
    scorer: Scorer | None = None  # the rules of exact match and F1; none: cmrc if most training texts are Chinese
    strict: bool = False  # whether answers that are not where the file says are refused

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stride(self.stride)
        require(self.longest >= 1, "longest must be 1 token or more, got {longest}", longest=self.longest)

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("question", "context", "answers"),)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (*ROWS, ".json")

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("f1",)

    @property
    def head(self) -> str:
        return "span"

    def knows(self, path: Path, columns: Any) -> bool:
        return format_of(path) == ".json" or super().knows(path, columns)

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Asked], Counter[str]]:
        fixed(columns, "find answers")
        return read_questions(path, labelled=labelled, strict=self.strict)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Asked]:
        """Turn pairs of a question and a text into examples. Values that are examples stay as they are."""
        names = where or [f"example {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_asked(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Asked]) -> Span:
        lacking = any(asked.answers == () for asked in examples) if self.no_answer is None else self.no_answer
        require(
            lacking or self.threshold == 0,
            "threshold={threshold} has no effect, because every training question has an answer: leave it out, or set "
            "no_answer=true",
            threshold=self.threshold,
        )
        return replace(self, no_answer=lacking, scorer=self.scorer or scorer_of([asked.context for asked in examples]))

    def check(self, examples: Sequence[Asked], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, asked in enumerate(examples) if labelled and asked.answers is None), None)
        if wrong is not None:
            where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
            raise UserError("{where}: the question has no answers: give a list, empty if there is none", where=where)

    def recipe(self, base: Pretrained) -> Recipe:
        return with_head(
            base, self.decided(base.recipe), self.head, Head(pool=usual_pool(base), norm=token_norm(base)), 0
        )

    def lay_out(self, examples: Sequence[Asked], *, labelled: bool = True) -> Laid:
        """The question, then a window of the text. The place of the summary token stands for "no answer"."""
        whole = [[Mark(0, len(asked.context), 0)] for asked in examples]
        marks = [Marks(CONTEXT, whole, on="all", text="b")]
        if labelled:
            places = [[Mark(*asked.place, 0)] if asked.place else [] for asked in examples]
            marks += [Marks(BEGINS, places, on="first", text="b"), Marks(ENDS, places, on="last", text="b")]
        weight = np.array([asked.known for asked in examples], np.float32)
        readings = [Text(asked.question, asked.context) for asked in examples]
        return Laid(readings, marks=marks, answers={WEIGHT: weight}, stride=self.stride)

    def baseline(self, examples: Sequence[Asked]) -> dict[str, Any]:
        return {}

    def answer(self, model: Reader, examples: Sequence[Asked]) -> Answered:
        """The best spans of each text."""
        windows, notes = model.windows("span scores", self.lay_out(examples, labelled=False))
        return Answered([self._found(asked, some) for asked, some in zip(examples, windows, strict=True)], notes)

    def score(self, model: Reader, examples: Sequence[Asked], answers: Sequence[Found]) -> dict[str, Any]:
        """The share of exact answers, and the mean F1; with questions that have no answer, also of both kinds."""
        scorer = self.scorer or "squad"
        pairs = [(found.text, asked.answers or ()) for asked, found in zip(examples, answers, strict=True)]
        scores = {"exact": [exact(*pair, scorer) for pair in pairs], "f1": [f1(*pair, scorer) for pair in pairs]}
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        has = np.array([bool(asked.answers) for asked in examples])
        if not has.all() and has.any():
            means |= {
                f"{name}_{kind}": float(np.mean(np.array(values)[has == wanted]))
                for name, values in scores.items()
                for kind, wanted in (("with_answer", True), ("without_answer", False))
            }
        return {"examples": len(examples)} | means | {"scorer": scorer}

    def judge(self, model: Reader, examples: Sequence[Asked]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        return Judged(found["f1"], {name: found[name] for name in ("f1", "exact")}, answers)

    def graded(self, examples: Sequence[Asked], answers: Sequence[Found]) -> list[Graded]:
        """An answer is right if it matches exactly."""
        return [self._graded(asked, found) for asked, found in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Asked], answers: Sequence[Found]) -> ProbabilityTable:
        """A row for each question: the spans that were kept. The right one is the most likely one that matches exactly."""
        rows = [[share for _, _, share in found.best] for found in answers]
        return probability_table(rows, [self._right(*both) for both in zip(examples, answers, strict=True)])

    def groups(self, examples: Sequence[Asked]) -> list[list[int]]:
        return same([asked.context for asked in examples])

    def notices(self, model: Reader, examples: Sequence[Asked], dev: Sequence[Asked], best: Judged | None) -> list[str]:
        return []

    def _graded(self, asked: Asked, found: Found) -> Graded:
        right, scorer = asked.answers or (), self.scorer or "squad"
        matched = [share for text, _, share in found.best if exact(text, right, scorer)]
        truth = " / ".join(dict.fromkeys(right)) or NO_ANSWER
        return Graded(
            found.text or NO_ANSWER, found.best[0][2], truth, sum(matched), bool(exact(found.text, right, scorer))
        )

    def _right(self, asked: Asked, found: Found) -> int:
        """The place of the most likely right answer among those that were kept; -1: it is none of them."""
        scorer, right = self.scorer or "squad", asked.answers or ()
        matched = [(share, -i) for i, (text, _, share) in enumerate(found.best) if exact(text, right, scorer)]
        return -max(matched)[1] if matched else -1

    def _found(self, asked: Asked, windows: Sequence[Window]) -> Found:
        spans: dict[tuple[int, int], float] = {}
        for window in windows:
            for span, score in _spans(window, self.longest):
                place = _whole_words(asked.context, *span)
                spans[place] = max(score, spans.get(place, -np.inf))
        best = sorted(spans.items(), key=lambda item: -item[1])[:BEST]
        if self.no_answer:
            # as for SQuAD 2.0, there is no answer only if no window seems to have one
            none = min(float(window.scores[window.summary].sum()) for window in windows)
            at = 0 if not best or none - best[0][1] > self.threshold else 1
            best.insert(at, ((0, 0), none))
        require(bool(best), "{where}: the text has no tokens", where=asked.where)
        shares = self.shares(np.array([score for _, score in best]))
        ranked = [(asked.context[b:e], (b, e), float(share)) for ((b, e), _), share in zip(best, shares, strict=True)]
        return Found(tuple(ranked))


def _spans(window: Window, longest: int) -> list[tuple[tuple[int, int], float]]:
    """The best spans of a window: their characters and their scores."""
    inside = np.flatnonzero(window.columns[CONTEXT] >= 0)
    first, last = (inside[np.argsort(-window.scores[inside, side], kind="stable")[:BEST]] for side in (0, 1))
    places = window.columns[PLACES]
    return [
        ((int(places[a, 0]), int(places[b, 1])), float(window.scores[a, 0] + window.scores[b, 1]))
        for a in first.tolist()
        for b in last.tolist()
        if a <= b < a + longest and places[a, 0] < places[b, 1]
    ]


def _whole_words(text: str, begin: int, end: int) -> tuple[int, int]:
    """The span with the rest of its first and last word: a token may be a piece of a word. Chinese has no such words."""
    while begin > 0 and _spelled(text[begin - 1]) and _spelled(text[begin]):
        begin -= 1
    while end < len(text) and _spelled(text[end - 1]) and _spelled(text[end]):
        end += 1
    return begin, end


def _spelled(character: str) -> bool:
    return character.isdigit() or character.lower() != character.upper()


def _asked(value: Any, where: str) -> Asked:
    if isinstance(value, Asked):
        return value
    question, context = two_texts(value, where, "finds the answer to a question in a text: give a question and a text")
    return Asked(question, context, None, None, where, {"question": question, "context": context})
