"""Last words: whether a language model continues a context with its last word (LAMBADA, Paperno et al. 2016).

An answer counts if each of its tokens is the likeliest one after the tokens before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unmask import metrics
from unmask.errors import UserError, require
from unmask.infer.likelihood import Likelihood, machine_of, predicts_next, trace_scores
from unmask.infer.model import Model
from unmask.tasks._rows import read_rows
from unmask.text import encode_documents

COLUMNS = ("context", "answer", "after")  # a file with these columns holds last words; what comes after is not read


@dataclass(frozen=True)
class LastWord:
    """A text without its last word, and this word."""

    context: str
    answer: str
    where: str = "an example"  # its name in error messages


def read_last_words(file: str | Path) -> list[LastWord]:
    """The examples of a file: JSON lines or CSV with the columns `context`, `answer` and `after`."""
    found = [_example(row, f"{file}, line {number:,}") for number, row in read_rows(Path(file))]
    require(bool(found), "{file} holds no examples: write lines with context, answer and after", file=file)
    return found


def _example(row: Mapping[str, Any], where: str) -> LastWord:
    for name in COLUMNS[:2]:
        value = row.get(name)
        require(
            isinstance(value, str) and bool(value.strip()),
            "{where}: {name!r} must be a text, got {value!r:.60}: write one, or remove the line",
            where=where,
            name=name,
            value=value,
        )
    return LastWord(row["context"].rstrip(), row["answer"].strip(), where)


def evaluate_last_words(model: Model, examples: Sequence[LastWord]) -> dict[str, Any]:
    """The accuracy of a language model on last words, and their perplexity."""
    *_, last = trace_last_words(model, examples)
    return last


def trace_last_words(model: Model, examples: Sequence[LastWord]) -> Iterator[dict[str, Any]]:
    """Score last words, yielding a record per pass. The last record holds the scores and `notes`."""
    if not predicts_next(model):
        raise UserError(
            "{folder} does not predict the next token, so it cannot be asked for last words: use a model that reads from left "
            "to right, such as gpt2 or gpt-bert, or score {folder} on minimal pairs",
            folder=model.folder,
        )
    notes: Counter[str] = Counter()
    rows, counts = _rows(model, examples, notes)
    found: list[Likelihood] = []
    for found, done, total in trace_scores(model, rows, counts):
        yield {"tokens": done, "tokens_total": total}
    nats = -sum(float(one.logs.sum()) for one in found)
    yield {
        "examples": len(examples),
        "accuracy": float(np.mean([one.likeliest.all() for one in found])),
        "perplexity": metrics.perplexity(nats, len(examples)),
        "perplexity_per_token": metrics.perplexity(nats, sum(counts)),
        "way": "last word",
        "precision": "bfloat16" if machine_of(model).half else "float32",
        "notes": dict(notes),
    }


def _rows(model: Model, examples: Sequence[LastWord], notes: Counter[str]) -> tuple[list[np.ndarray], list[int]]:
    """The tokens of each example, and how many of the last ones are its answer. The notes count contexts that are cut."""
    texts = [f"{example.context} {example.answer}" for example in examples]
    opening, end = model.opening, model.tokenizer.role("sep")
    room = model.length - len(opening)
    rows, counts = [], _answer_tokens(model, examples)
    for example, count, document in zip(
        examples, counts, encode_documents(texts, model.tokenizer, "none"), strict=True
    ):
        require(
            1 <= count < room,
            "{where}: the answer {answer!r:.40} has {count:,} tokens, but must have between 1 and {most:,}: shorten or "
            "remove it",
            where=example.where,
            answer=example.answer,
            count=count,
            most=room - 1,
        )
        ids = document.ids if opening else np.concatenate(([end], document.ids))
        if len(ids) > room:
            notes[
                f"contexts too long for the {model.length:,} tokens that the model reads, cut at their beginning"
            ] += 1
        rows.append(np.concatenate((np.array(opening, dtype=np.int64), ids[-room:])))
    return rows, counts


def _answer_tokens(model: Model, examples: Sequence[LastWord]) -> list[int]:
    """How many tokens each answer has in its text. The space before it may be part of its first token, or of the context."""
    lines = [example.context.splitlines()[-1] for example in examples]  # a text is tokenised line by line
    found = model.tokenizer.encode_many([f"{line} {e.answer}" for line, e in zip(lines, examples, strict=True)])
    return [
        sum(stop > len(line) + 1 for _, stop in encoding.offsets) for line, encoding in zip(lines, found, strict=True)
    ]
