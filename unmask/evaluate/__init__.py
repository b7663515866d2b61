"""A model on a task or on a text, scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask import metrics
from unmask.data.examples import Text
from unmask.errors import require
from unmask.evaluate.context_curve import (
    check_file,
    checked_lengths,
    context_curve,
    trace_context,
    trace_read_text,
    write_curve,
)
from unmask.evaluate.perplexity import evaluate_text, score_read_text, score_text, windowing
from unmask.evaluate.prompts import Scoring, ask, evaluate_prompts
from unmask.evaluate.scored_text import read_scored_text
from unmask.infer.choose import right
from unmask.infer.classify import ADAPT_FIRST, check_texts, probabilities
from unmask.infer.likelihood import predicts_next
from unmask.infer.model import Model
from unmask.infer.sampling import Greedy
from unmask.infer.write import write
from unmask.predict import Label
from unmask.tasks import choose, classify
from unmask.tasks import write as writing
from unmask.tasks._rows import read_rows
from unmask.tasks.classify import Columns, Example, label_numbers
from unmask.text.documents import FORMATS, suffixes

__all__ = [
    "Scoring", "ask", "check_file", "check_kind", "checked_lengths", "context_curve", "evaluate_examples",
    "evaluate_file", "evaluate_prompts", "evaluate_text", "evaluate_writing", "is_language_model", "read_scored_text",
    "score_read_text", "score_text", "trace_context", "trace_read_text", "windowing", "write_curve",
]  # fmt: skip


def is_language_model(model: Model) -> bool:
    """Whether it is scored on text rather than on examples: it was not adapted and predicts the next token."""
    return not model.labels and not model.chooses and predicts_next(model)


def check_kind(model: Model, file: str | Path) -> None:
    """Refuse a file that is not of the kind this model is scored on: plain text, or examples."""
    path = Path(file)
    if is_language_model(model):
        readable = path.is_file() and suffixes(path) in ((".jsonl", ""), (".jsonl", ".gz"), (".jsonl", ".xz"))
        labelled = readable and "label" in next(read_rows(path), (0, {}))[1]
        require(
            not labelled,
            f"{file} holds labelled examples, and {model.folder} has no labels: it is scored on plain text ("
            f"{', '.join(FORMATS)}); adapt it first with 'unmask adapt', or ask it with 'unmask zero-shot'",
        )
    else:
        require(
            suffixes(path)[0] not in (".txt", ".parquet"),
            f"{file} is plain text, and {model.folder} is scored on examples of its task (.jsonl or .csv): for "
            "perplexity take a model that reads from left to right and was not adapted",
        )


def evaluate_file(
    model: Model, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8", columns: Columns | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The scores of a language model on a text, of an adapted one on a file of its task: labels, choices, texts to write."""
    check_kind(model, file)
    if is_language_model(model):
        return evaluate_text(
            model, file, context=context, stride=stride, memory=memory, whole=whole, lines=lines, encoding=encoding
        )
    require(
        context is None and stride is None and memory is None and not whole and not lines and encoding == "utf-8",
        f"context, stride, memory, whole, lines and encoding say how a text is read, and {model.folder} is scored on examples: leave them out",
    )
    require(
        bool(model.labels) or columns in (None, Columns()),
        f"{model.folder} was not adapted to labels, and columns are named for these alone: leave --text and --label out",
    )
    if model.chooses:
        questions = choose.read(file)
        return {"examples": len(questions), "accuracy": right(model, questions)}
    if not model.labels and "prefix" in model.recipe.writes:
        return evaluate_writing(model, writing.read(file))
    return evaluate_examples(model, classify.read(file, columns), file)


def evaluate_examples(model: Model, examples: list[Example], file: str | Path = "the examples") -> dict[str, Any]:
    """Accuracy, that of the majority label, macro F1, MCC, scores per label and the confusion matrix."""
    head: Any = model.head(Label, ADAPT_FIRST)
    names = [example.where or f"{file}, example {number:,}" for number, example in enumerate(examples, 1)]
    check_texts(head.spec, [example.text for example in examples], str(model.folder), names)
    predicted = probabilities(model, [example.text for example in examples]).argmax(1)
    truth = label_numbers(examples, model.labels, file)
    return metrics.classification(truth, predicted.tolist(), model.labels)


def evaluate_writing(model: Model, pairs: list[Text]) -> dict[str, Any]:
    """The likeliest text for each source, against its target: ROUGE-L over tokens, and how many are exactly right."""
    targets = [model.tokenizer.encode(pair.b or "") for pair in pairs]
    longest = min(max(map(len, targets)) + 8, model.length // 2)
    texts = ["".join(write(model, pair.a, tokens=longest, sampling=Greedy())) for pair in pairs]
    written = [model.tokenizer.encode(text) for text in texts]
    both = list(zip(targets, written, strict=True))
    return {
        "examples": len(pairs),
        "rouge_l": sum(metrics.rouge_l(t, w) for t, w in both) / len(both),
        "exact": sum(t == w for t, w in both) / len(both),
        "written": texts,
    }
