"""Tag: a tag for each word. JSON lines with `tokens` and `tags`, or CoNLL columns (.conll, .txt, .tsv)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask import metrics
from unmask.axes import Answered, Graded, Judged, Pretrained, ProbabilityTable, Reader, Window
from unmask.data.examples import Laid, Text
from unmask.data.marks import Mark, Marks
from unmask.errors import UserError, require
from unmask.predict import Tags
from unmask.predict.tags import PLACE, TAG
from unmask.recipe import Recipe
from unmask.tasks._answers import Tagged
from unmask.tasks._calibrated import Calibrated
from unmask.tasks._class_weights import class_weights
from unmask.tasks._entities import OUTSIDE, Scheme, broken, scheme_of, span_scores
from unmask.tasks._labelled import Columns, fixed
from unmask.tasks._recipe import reads_everything, token_norm, with_head
from unmask.tasks._rows import ROWS, format_of, has_words
from unmask.tasks._sentences import COLUMNS, Sentence, read_sentences, sentence_of
from unmask.tasks._training import check_dropout, check_stride


@dataclass(frozen=True)
class Tag(Calibrated):
    """How a model learns to tag words: each tag is predicted from one token of its word."""

    dropout: float = 0.1  # before the output layer
    crf: bool = False  # whether tags that follow each other have a score too; the most likely sequence is the answer
    dense: int | None = None  # width of a layer with ReLU before the output layer; none: there is no such layer
    # the token of a word that its tag is predicted from; none: the first if tokens see both sides, otherwise the last
    token: Literal["first", "last"] | None = None
    stride: float = 0.5  # a sentence that is too long is read in windows, which advance by this share of a window
    balance: bool = False  # weights that make rare tags count as much as frequent ones, from the training examples
    weights: tuple[float, ...] = ()  # of the loss of each tag; empty: all 1, or as `balance` computes them
    labels: tuple[str, ...] = ()  # the tags; empty: those of the training sentences, sorted

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        check_stride(self.stride)
        require(self.dense is None or self.dense >= 1, "dense must be none or 1 or more, got {dense}", dense=self.dense)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("tokens", "tags"),)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (*dict.fromkeys((*ROWS, *COLUMNS)),)

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("f1", "accuracy")

    @property
    def head(self) -> str:
        return "tags"

    @property
    def scheme(self) -> Scheme:
        """What the tags mark: spans (BIO, BIOES), or nothing but their word."""
        return scheme_of(self.labels)

    def knows(self, path: Path, columns: Any) -> bool:
        plain = columns in (None, Columns())  # a file whose columns are named is a table
        return format_of(path) == ".conll" or (plain and has_words(path)) or super().knows(path, columns)

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Sentence], Counter[str]]:
        fixed(columns, "tag words")
        found = read_sentences(path, labelled=labelled)
        if labelled:
            _check_scheme(found, scheme_of(tag for sentence in found for tag in sentence.tags or ()))
        return found, Counter()

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return None

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Sentence]:
        """Turn texts and lists of words into sentences. Values that are sentences stay as they are."""
        names = where or [f"text number {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_sentence(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Sentence]) -> Tag:
        found = {tag for sentence in examples for tag in sentence.tags or ()}
        require(
            bool(self.labels) or len(found) >= 2,
            "tagging needs two tags or more, but the sentences have {found}",
            found=sorted(found),
        )
        named = replace(self, labels=self.labels or tuple(sorted(found, key=_by_type)))
        named.check(examples, "the first training sentence")
        weights = class_weights(self.balance, self.weights, named._numbers(examples), len(named.labels))
        return replace(named, balance=False, weights=weights)

    def check(self, examples: Sequence[Sentence], reader: str, *, labelled: bool = True) -> None:
        for number, sentence in enumerate(examples if labelled else (), 1):
            if sentence.tags is None:
                where = sentence.where or f"example {number:,} of {len(examples):,}"
                raise UserError("{where}: the sentence has no tags: give a tag for each word", where=where)
            wrong = next((i for i, tag in enumerate(sentence.tags) if tag not in self.labels), None)
            if wrong is not None:
                raise UserError(
                    "{where}: no training sentence has the tag {tag!r}; the known tags are {labels}",
                    where=sentence.at(wrong),
                    tag=sentence.tags[wrong],
                    labels=", ".join(self.labels[:40]),
                )

    def recipe(self, base: Pretrained) -> Recipe:
        token = self.token or ("first" if reads_everything(base) else "last")
        head = Tags(
            classes=len(self.labels), dropout=self.dropout, crf=self.crf, dense=self.dense, weights=self.weights,
            norm=token_norm(base) if self.dense is None else None,
        )  # fmt: skip
        return with_head(base, self.decided(base.recipe, token=token), self.head, head, 0)

    def lay_out(self, examples: Sequence[Sentence], *, labelled: bool = True) -> Laid:
        on, places = self.token or "first", [sentence.places for sentence in examples]
        marks = [Marks(PLACE, places, on=on)]
        if labelled:
            numbers = {tag: number for number, tag in enumerate(self.labels)}
            tags = [[numbers[tag] for tag in sentence.tags or ()] for sentence in examples]
            own = [
                [Mark(m.start, m.end, t) for m, t in zip(*both, strict=True)] for both in zip(places, tags, strict=True)
            ]
            marks.append(Marks(TAG, own, on=on))
        return Laid([Text(sentence.text) for sentence in examples], marks=marks, stride=self.stride)

    def baseline(self, examples: Sequence[Sentence]) -> dict[str, Any]:
        """The tags, and the share of words that have the most frequent one."""
        truth = self._numbers(examples)
        return {"labels": list(self.labels), "scheme": self.scheme, "baseline": metrics.majority(truth, self.labels)}

    def answer(self, model: Reader, examples: Sequence[Sentence]) -> Answered:
        """The most likely tag of each word."""
        found, notes = model.windows("tag scores", self.lay_out(examples, labelled=False))
        scores = [_scores(one, len(e.words)) for one, e in zip(found, examples, strict=True)]
        lacking = sum(score is None for one in scores for score in one)
        if lacking:
            notes = notes + Counter({"words without a token of their own: they continue the tag before them": lacking})
        return Answered([self._tagged(e, one) for e, one in zip(examples, scores, strict=True)], notes)

    def score(self, model: Reader, examples: Sequence[Sentence], answers: Sequence[Tagged]) -> dict[str, Any]:
        """The accuracy over words; of spans, precision, recall and F1 of whole spans; otherwise the confusion matrix."""
        truth, predicted = [list(e.tags or ()) for e in examples], [list(a.tags) for a in answers]
        if self.scheme != "plain":
            accuracy = float(
                np.mean([a == b for t, p in zip(truth, predicted, strict=True) for a, b in zip(t, p, strict=True)])
            )
            return {"examples": len(examples)} | span_scores(truth, predicted) | {"accuracy": accuracy}
        right, given = ([self.labels.index(tag) for tags in some for tag in tags] for some in (truth, predicted))
        found = metrics.classification(right, given, self.labels)
        return dict(found) | {"examples": len(examples), "words": found["examples"]}

    def judge(self, model: Reader, examples: Sequence[Sentence]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        shown = ("accuracy", "macro_f1") if self.scheme == "plain" else ("f1", "precision", "recall", "accuracy")
        return Judged(found[shown[0]], {name: found[name] for name in shown}, answers)

    def graded(self, examples: Sequence[Sentence], answers: Sequence[Tagged]) -> list[Graded]:
        """A sentence is right if all its tags are. Shown is the wrong tag that is surest; in a right sentence, the least sure tag."""
        return [self._graded(tuple(e.tags or ()), one) for e, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Sentence], answers: Sequence[Tagged]) -> ProbabilityTable:
        """A row for each word that has a token of its own."""
        tables = [one.shares for one in answers if one.shares is not None]
        shares = np.concatenate([np.zeros((0, len(self.labels))), *tables])
        read = shares.any(1)
        return ProbabilityTable(shares[read], np.array(self._numbers(examples), np.int64)[read])

    def notices(
        self, model: Reader, examples: Sequence[Sentence], dev: Sequence[Sentence], best: Judged | None
    ) -> list[str]:
        """A notice if the model gives the same tag to all words."""
        given = {tag for answer in (best.answers if best else ()) for tag in answer.tags}
        if len(given) != 1:
            return []
        return [
            f"one tag is predicted for all dev words: {given.pop()!r}; the model has not learned to distinguish the tags: "
            "train longer (--set epochs=...), set another rate, or adapt a model with more pretraining"
        ]

    def _numbers(self, examples: Sequence[Sentence]) -> list[int]:
        """The numbers of the tags of all words."""
        numbers = {tag: number for number, tag in enumerate(self.labels)}
        return [numbers[tag] for sentence in examples for tag in sentence.tags or ()]

    def _graded(self, truth: tuple[str, ...], answer: Tagged) -> Graded:
        sure, shares = np.array(answer.probabilities), answer.shares
        assert shares is not None
        wrong = [place for place, (tag, right) in enumerate(zip(answer.tags, truth, strict=True)) if tag != right]
        read = np.flatnonzero(shares.any(1)).tolist()  # the others have no token of their own, and no probability
        places = [place for place in wrong if place in read] or wrong or read or range(len(truth))
        at = (max if wrong else min)(places, key=lambda place: sure[place])
        word = answer.words[at]
        of_truth = float(shares[at, self.labels.index(truth[at])]) if wrong else float(sure[at])
        return Graded(f"{word}: {answer.tags[at]}", float(sure[at]), f"{word}: {truth[at]}", of_truth, not wrong)

    def _tagged(self, sentence: Sentence, scores: Sequence[np.ndarray | None]) -> Tagged:
        tags: list[str] = []
        shares: list[float] = []
        table = np.zeros((len(scores), len(self.labels)), np.float32)
        for word, one in enumerate(scores):
            if one is None:
                before = tags[-1] if tags else (OUTSIDE if OUTSIDE in self.labels else self.labels[0])
                tags.append(_going_on(before, self.labels))
                shares.append(shares[-1] if shares else 0.0)
            else:
                share = self.shares(one)
                tags.append(self.labels[int(share.argmax())])
                shares.append(float(share.max()))
                table[word] = share
        return Tagged(sentence.words, tuple(tags), tuple(shares), self.scheme != "plain", table)


def _check_scheme(sentences: Sequence[Sentence], scheme: Scheme) -> None:
    for sentence in sentences:
        wrong = broken(sentence.tags or (), scheme)
        if wrong is not None:
            raise UserError(
                "{where}: the tags follow {scheme}, and this sequence breaks it: {why}; correct the tag",
                where=sentence.at(wrong[0] if wrong[0] < len(sentence.words) else wrong[0] - 1),
                scheme=scheme,
                why=wrong[1],
            )


def _scores(windows: Sequence[Window], words: int) -> list[np.ndarray | None]:
    """The scores of each word, from the window in which it has most context; None: no token is its own."""
    found: list[np.ndarray | None] = [None] * words
    context = [-1] * words
    for window in windows:
        places = window.columns[PLACE]
        for at in np.flatnonzero(places >= 0).tolist():
            word, room = int(places[at]), min(at, len(places) - 1 - at)
            if room > context[word]:
                found[word], context[word] = window.scores[at], room
    return found


def _going_on(before: str, labels: Sequence[str]) -> str:
    """The tag of a word that shares its token with the word before it: inside the same span."""
    inside = f"I-{before.partition('-')[2]}"
    return inside if before[:2] in ("B-", "I-") and inside in labels else before


def _by_type(tag: str) -> tuple[bool, str, str]:
    """The order of tags: O, then by type, then by prefix."""
    return tag != OUTSIDE, tag.partition("-")[2], tag


def _sentence(value: Any, where: str) -> Sentence:
    if isinstance(value, Sentence):
        return value
    if isinstance(value, str):
        return sentence_of(value, where)
    require(
        isinstance(value, list | tuple) and bool(value) and all(isinstance(one, str) and one.strip() for one in value),
        "{where}: this model tags words: give a text, or a list of words, got {value!r:.60}",
        where=where,
        value=value,
    )
    return Sentence(tuple(value), None, where, {"tokens": list(value)})
