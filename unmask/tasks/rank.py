"""Rank: how well each passage answers a query. JSON lines with `query`, `passage`, `label`, or `query` and `candidates`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask import metrics
from unmask.axes import Answered, Judged, Pretrained, Reader
from unmask.data.examples import Laid, Text
from unmask.errors import UserError, require
from unmask.predict.label import ANSWERS
from unmask.recipe import Recipe
from unmask.tasks._answers import Ranked
from unmask.tasks._class_weights import yes_weights
from unmask.tasks._labelled import fixed
from unmask.tasks._lists import by_query, lists_of
from unmask.tasks._recipe import choice_head, label_head, with_head
from unmask.tasks._rows import read_rows
from unmask.tasks._texts import two_texts
from unmask.tasks._training import Training, check_dropout


@dataclass(frozen=True)
class Candidate:
    """A query and one passage."""

    query: str
    passage: str
    relevance: float | None = None  # 0: not relevant; None if it is not known
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # its columns

    @property
    def shown(self) -> tuple[str, ...]:
        return self.query, self.passage


@dataclass(frozen=True)
class Rank(Training):
    """How a model learns to rank: it reads the query and a passage together, and says how likely the passage is relevant."""

    dropout: float = 0.1  # before the output layer
    # whether there is a dense layer before the output; none: the recipe's value if tokens see both sides, otherwise false
    pooler: bool | None = None
    activation: Literal["tanh", "gelu"] | None = None  # of that dense layer; none: the recipe's value
    # learn which of so many passages of a query is the relevant one (MT-DNN); none: learn of each passage whether it is relevant
    lists: int | None = None
    balance: bool = (
        False  # a weight that makes the relevant passages count as much as the others, from the training examples
    )
    weights: tuple[float, ...] = ()  # one number, of the relevant passages; empty: 1, or as `balance` computes it
    highest: float | None = None  # the highest relevance, which is learned as 1; none: that of the training examples

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        require(
            self.lists is None or self.lists >= 2,
            "lists must be none, or 2 or more passages that are compared, got {lists}",
            lists=self.lists,
        )
        require(
            self.lists is None or not (self.balance or self.weights),
            "balance and weights have no effect with lists={lists}, which compares passages of one query: leave them out, or set lists=none",
            lists=self.lists,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("query", "passage", "label"), ("query", "candidates"))

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("mrr",)

    @property
    def head(self) -> str:
        return "label" if self.lists is None else "choice"

    @property
    def compares(self) -> bool:
        return True  # a rank is a place among the passages of a query

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Candidate], Counter[str]]:
        fixed(columns, "rank")
        rows = ((f"{path}, line {number:,}", row) for number, row in read_rows(path))
        found = [one for where, row in rows for one in _candidates(row, where, labelled)]
        require(bool(found), "{path} holds no examples: give a file with at least one query", path=path)
        return found, Counter()

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Candidate]:
        """Turn pairs of a query and a passage into examples. Values that are examples stay as they are."""
        names = where or [f"example {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_given(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Candidate]) -> Rank:
        self.check(examples, "the first training example")
        highest = max(float(one.relevance or 0) for one in examples)
        require(highest > 0, "no passage is relevant to its query: give passages with a label over 0")
        require(
            self.lists is None or bool(lists_of(examples, self.lists)),
            "no query has both a relevant passage and a less relevant one, which lists={lists} compares: set lists=none",
            lists=self.lists,
        )
        ranged = replace(self, highest=highest if self.highest is None else self.highest)
        weights = yes_weights(self.balance, self.weights, ranged._shares(examples))
        return replace(ranged, balance=False, weights=weights)

    def among_many(self, *, pairs: Any, lists: int | None) -> Rank:
        return replace(self, lists=lists) if self.lists is None else self

    def check(self, examples: Sequence[Candidate], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, one in enumerate(examples) if labelled and one.relevance is None), None)
        if wrong is not None:
            where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
            raise UserError("{where}: the passage has no label: give 1 if it is relevant, otherwise 0", where=where)

    def recipe(self, base: Pretrained) -> Recipe:
        if self.lists is not None:
            one = choice_head(base, dropout=self.dropout, pooler=self.pooler, activation=self.activation)
            task = self.decided(base.recipe, pooler=one.pooler, activation=one.activation if one.pooler else None)
            return with_head(base, task, self.head, one, 0)
        head = label_head(
            base, classes=1, answer="classes", pool=None, dropout=self.dropout, pooler=self.pooler,
            activation=self.activation, weights=self.weights,
        )  # fmt: skip
        decided = self.decided(base.recipe, pooler=head.pooler, activation=head.activation if head.pooler else None)
        return with_head(base, decided, self.head, head, 0)

    def lay_out(self, examples: Sequence[Candidate], *, labelled: bool = True) -> Laid:
        readings = [Text(one.query, one.passage) for one in examples]
        if not labelled:
            return Laid(readings)
        if self.lists is not None:
            chosen = lists_of(examples, self.lists)
            return Laid([tuple(readings[number] for number in some) for some in chosen], [0] * len(chosen))
        return Laid(readings, answers={ANSWERS: self._shares(examples)})

    def _shares(self, examples: Sequence[Candidate]) -> np.ndarray:
        """N 1, how relevant each passage is, 0 to 1."""
        shares = np.array([float(one.relevance or 0) for one in examples]) / (self.highest or 1.0)
        return shares.clip(0, 1)[:, None]

    def baseline(self, examples: Sequence[Candidate]) -> dict[str, Any]:
        return {}

    def answer(self, model: Reader, examples: Sequence[Candidate]) -> Answered:
        """The score of each passage, and its rank among the given passages of its query."""
        fact = "scores of each class" if self.lists is None else "choice scores"
        found, notes = model.scores(fact, self.lay_out(examples, labelled=False))
        scores = np.array([float(row[0]) for row in found])
        ranks = np.zeros(len(scores), np.int64)
        for numbers in by_query(examples):
            order = np.argsort(-scores[numbers], kind="stable")
            ranks[np.array(numbers)[order]] = np.arange(1, len(numbers) + 1)
        return Answered([Ranked(*both) for both in zip(scores.tolist(), ranks.tolist(), strict=True)], notes)

    def score(self, model: Reader, examples: Sequence[Candidate], answers: Sequence[Ranked]) -> dict[str, Any]:
        """The means over queries of reciprocal rank, average precision and nDCG. A query without a relevant passage has no
        such scores: it is left out and counted."""
        groups = [
            ([answers[i].score for i in numbers], [float(examples[i].relevance or 0) for i in numbers])
            for numbers in by_query(examples)
        ]
        scored = [metrics.ranking(scores, relevance) for scores, relevance in groups if max(relevance) > 0]
        require(bool(scored), "no query has a relevant passage: there is nothing to score")
        means = {name: float(np.mean([one[name] for one in scored])) for name in scored[0]}
        return {
            "examples": len(examples),
            "queries": len(scored),
            "queries_left_out": len(groups) - len(scored),
        } | means

    def judge(self, model: Reader, examples: Sequence[Candidate]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        return Judged(found["mrr"], {name: value for name, value in found.items() if isinstance(value, float)}, answers)

    def kinds(self, examples: Sequence[Candidate]) -> list[str]:
        """Whether the query of each passage has a relevant one: the others have no scores."""
        scored = {one.query for one in examples if one.relevance}
        return ["scored" if one.query in scored else "not scored" for one in examples]

    def groups(self, examples: Sequence[Candidate]) -> list[list[int]]:
        return by_query(examples)

    def relevance(self, answer: Ranked) -> float:
        return answer.score

    def notices(
        self, model: Reader, examples: Sequence[Candidate], dev: Sequence[Candidate], best: Judged | None
    ) -> list[str]:
        return []


def _candidates(row: Mapping[str, Any], where: str, labelled: bool) -> Iterator[Candidate]:
    """The passages of a row: one, or all in `candidates`."""
    query = _text(row, "query", where)
    if "candidates" not in row:
        relevance = _relevance(row.get("label"), where) if labelled else None
        yield Candidate(query, _text(row, "passage", where), relevance, where, row)
        return
    several = row["candidates"]
    require(
        isinstance(several, list) and bool(several),
        '{where}: "candidates" must be a list of texts, or of {{"text": ..., "label": 1}}, got {several!r:.60}',
        where=where,
        several=several,
    )
    chosen = row.get("label")
    right = {*chosen} if isinstance(chosen, list) else {chosen}
    for number, one in enumerate(several):
        own = one if isinstance(one, dict) else {"text": one, "label": int(number in right or one in right)}
        known = labelled and (isinstance(one, dict) or chosen is not None)
        require(
            known or not labelled,
            '{where}: the row has "candidates" and no "label": give the number of the relevant one, or a list of numbers',
            where=where,
        )
        relevance = _relevance(own.get("label"), where) if known else None
        passage = _text(own, "text", f"{where}, candidate {number}")
        kept = {name: value for name, value in row.items() if name != "candidates"}
        yield Candidate(query, passage, relevance, f"{where}, candidate {number}", kept | {"passage": passage})


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    require(
        isinstance(value, str) and bool(value.strip()),
        '{where}: "{name}" must be a text that is not empty, got {value!r:.60}; the columns are {known}',
        where=where,
        name=name,
        value=value,
        known=", ".join(map(repr, row)),
    )
    return str(value)


def _relevance(value: Any, where: str) -> float:
    """A relevance: 0, 1, or a higher number for a better passage."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    require(
        0 <= number < float("inf"),
        '{where}: "label" says how relevant the passage is, a number from 0, got {value!r:.60}',
        where=where,
        value=value,
    )
    return number


def _given(value: Any, where: str) -> Candidate:
    if isinstance(value, Candidate):
        return value
    query, passage = two_texts(value, where, "scores a passage for a query: give both")
    return Candidate(query, passage, None, where, {"query": query, "passage": passage})
