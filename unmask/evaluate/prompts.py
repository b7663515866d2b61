"""Evaluate a language model by prompts, without training (GPT-2): the most likely of several answers, or an exact answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from unmask import metrics
from unmask.errors import require
from unmask.infer.likelihood import Likelihood, require_predicts_next, trace_scores
from unmask.infer.model import Model
from unmask.tasks.prompt import PromptQuestion, read
from unmask.text.boundaries import LETTER, classes_of, codes_of
from unmask.text.template import Template

Normalise = Literal["token", "byte", "none"]

# After these characters, a language with spaces writes a space before the next word.
_WORD_END = re.compile("[A-Za-z\\u00c0-\\u024f0-9.,:;!?]")
_JOINED = "prompts have no space before their answer: if the language writes spaces, end the template with one"
_MERGED = "prompts end with a token that contains the beginning of the answer: this token is scored with the answer"


@dataclass(frozen=True)
class Scoring:
    """How answers are compared, and whether prompts that are too long are cut."""

    normalise: Normalise = "token"  # divide the log-likelihood of an answer by its tokens, by its bytes, or by nothing
    unconditional: bool = False  # also compare answers by log-likelihood minus log-likelihood without the prompt
    cut_left: bool = False  # cut the beginning of a prompt that is too long; otherwise such a prompt is an error

    def __post_init__(self) -> None:
        known = get_args(Normalise)
        require(
            self.normalise in known,
            "normalise must be {known}, got {normalise!r}",
            known=", ".join(known),
            normalise=self.normalise,
        )


@dataclass(frozen=True)
class Asked:
    """A question as tokens."""

    before: list[int]  # the tokens before the answer
    answers: list[list[int]]  # the tokens of each answer


def evaluate_prompts(
    model: Model, file: str | Path, *, prompt: str | Path, scoring: Scoring | None = None
) -> dict[str, Any]:
    """The scores of a language model on a file of questions. The template turns each question into a prompt."""
    *_, last = ask(model, read(file, Template.read(prompt)), scoring or Scoring())
    return last


def ask(model: Model, questions: Sequence[PromptQuestion], scoring: Scoring) -> Iterator[dict[str, Any]]:
    """Score the answers to the questions, yielding a record per pass. The last record holds the scores and `notes`.

    The prompt and the answer are joined without a change and tokenised as one text. Spaces at the end of a prompt belong
    to the answer, because in most vocabularies a space and the word after it are one token. If the prompt is empty, the
    answer follows an end-of-document token."""
    require_predicts_next(model)
    choosing = len(questions[0].choices) > 1
    require(
        choosing or not scoring.unconditional,
        "--unconditional compares choices, but these questions have no choices: leave --unconditional out",
    )
    require(
        choosing or scoring.normalise == "token",
        "--normalise {normalise} compares choices, but these questions have no choices: leave --normalise out",
        normalise=scoring.normalise,
    )
    notes: Counter[str] = Counter()
    asked = [_asked(model, question, number, scoring, notes) for number, question in enumerate(questions, 1)]
    rows = [(a.before, answer) for a in asked for answer in a.answers]
    if scoring.unconditional:
        rows += [(_beginning(model), answer) for _, answer in rows]
    joined = [np.array(before + answer) for before, answer in rows]
    found: list[Likelihood] = []
    for found, done, total in trace_scores(model, joined, [len(answer) for _, answer in rows]):
        yield {"tokens": done, "tokens_total": total}
    scores = _chosen(questions, asked, found, scoring) if choosing else _completed(questions, found)
    yield scores | {"notes": dict(notes)}


def _asked(model: Model, question: PromptQuestion, number: int, scoring: Scoring, notes: Counter[str]) -> Asked:
    """A question as tokens. The notes count prompts that are cut or joined to their answer."""
    encode, head = model.tokenizer.encode, question.prompt.rstrip()
    before, wholes = encode(head), [encode(question.prompt + choice) for choice in question.choices]
    shared = _common([before, *wholes])
    if shared < len(before):
        notes[_MERGED] += 1
    notes.update({_JOINED: 1} if _joined(question) else {})
    answers = [whole[shared:] for whole in wholes]
    for choice, answer in zip(question.choices, answers, strict=True):
        require(
            bool(answer),
            "question {number:,}: the answer {choice!r} has no tokens: change or remove it",
            number=number,
            choice=choice[:40],
        )
    room = model.length - max(map(len, answers)) - len(model.opening)
    require(
        room >= 1,
        (
            "question {number:,}: an answer has {length:,} tokens, but the model reads at most {length_2:,}, "
            "including the prompt: shorten the answer"
        ),
        number=number,
        length=model.length - room,
        length_2=model.length,
    )
    require(
        shared <= room or scoring.cut_left,
        (
            "question {number:,}: prompt and answer have {shared:,} tokens, but the model reads at most "
            "{length:,}: shorten the prompt, or cut its beginning with --cut-left"
        ),
        number=number,
        shared=shared + model.length - room,
        length=model.length,
    )
    if shared > room:
        notes[f"prompts too long for the {model.length:,} tokens that the model reads, cut at their beginning"] += 1
    require(
        len(set(map(tuple, answers))) == len(answers),
        (
            "question {number:,}: two answers have the same tokens, so they are equally likely: {choices}; change "
            "one of them"
        ),
        number=number,
        choices=list(question.choices)[:4],
    )
    return Asked([*model.opening, *before[:shared]][-room:] if shared else _beginning(model), answers)


def _beginning(model: Model) -> list[int]:
    """The tokens before the first token of a text: an end-of-document token, and the special tokens of a new document."""
    return [model.tokenizer.role("sep"), *model.opening]


def _chosen(
    questions: Sequence[PromptQuestion], asked: list[Asked], found: list[Likelihood], scoring: Scoring
) -> dict[str, Any]:
    """Multiple choice: how often the right answer is the most likely one."""
    logs = [float(one.logs.sum()) for one in found]
    divisors = [
        {"token": len(answer), "byte": len(choice.encode()), "none": 1}[scoring.normalise]
        for question, a in zip(questions, asked, strict=True)
        for choice, answer in zip(question.choices, a.answers, strict=True)
    ]
    given = logs[: len(divisors)]
    truth = [question.answer for question in questions]
    scores = _grouped([log / divisor for log, divisor in zip(given, divisors, strict=True)], questions)
    picked = [int(np.argmax(row)) for row in scores]
    record: dict[str, Any] = {
        "examples": len(questions),
        "accuracy": _share(picked, truth),
        "chance": float(np.mean([1 / len(question.choices) for question in questions])),
        "normalise": scoring.normalise,
    }
    if len({question.choices for question in questions}) == 1:
        record |= metrics.classification(truth, picked, questions[0].choices)
    if scoring.unconditional:
        differences = _grouped([a - b for a, b in zip(given, logs[len(divisors) :], strict=True)], questions)
        record["accuracy_unconditional"] = _share([int(np.argmax(row)) for row in differences], truth)
    record["predictions"] = [
        {"choice": q.choices[i], "answer": q.choices[q.answer], "scores": row}
        for q, i, row in zip(questions, picked, scores, strict=True)
    ]
    return record


def _completed(questions: Sequence[PromptQuestion], found: list[Likelihood]) -> dict[str, Any]:
    """Cloze: how often greedy decoding gives exactly the answer, and how likely the answer is."""
    logs = [float(one.logs.sum()) for one in found]
    exact = [bool(one.likeliest.all()) for one in found]
    return {
        "examples": len(questions),
        "exact": sum(exact) / len(exact),
        "log_likelihood": sum(logs) / len(logs),
        "perplexity": metrics.perplexity(-sum(logs), len(logs)),
        "perplexity_per_token": metrics.perplexity(-sum(logs), sum(len(one.logs) for one in found)),
        "predictions": [
            {"answer": q.choices[0], "exact": right, "log_likelihood": log}
            for q, right, log in zip(questions, exact, logs, strict=True)
        ],
    }


def _share(picked: list[int], truth: list[int]) -> float:
    return sum(a == b for a, b in zip(picked, truth, strict=True)) / len(truth)


def _grouped(values: list[float], questions: Sequence[PromptQuestion]) -> list[list[float]]:
    """The values of all answers, split by question."""
    edges = np.cumsum([0, *(len(question.choices) for question in questions)]).tolist()
    return [values[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _common(sequences: list[list[int]]) -> int:
    """The length of the longest common prefix of the sequences."""
    return next(
        (i for i, tokens in enumerate(zip(*sequences, strict=False)) if len(set(tokens)) > 1), min(map(len, sequences))
    )


def _joined(question: PromptQuestion) -> bool:
    """Whether there is no space between prompt and answer where a language with spaces would write one."""
    last, first = question.prompt[-1:], question.choices[0][:1]
    return bool(first) and bool(_WORD_END.match(last)) and classes_of(codes_of(first))[0] == LETTER
