"""A model on a task, scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask import metrics
from unmask.infer.classify import probabilities
from unmask.infer.model import Model
from unmask.tasks.classify import Example, label_numbers, read


def evaluate_file(model: Model, file: str | Path) -> dict[str, Any]:
    """Accuracy, F1, MCC and the confusion matrix of an adapted model on a labelled file."""
    return evaluate_examples(model, read(file), file)


def evaluate_examples(model: Model, examples: list[Example], file: str | Path = "the examples") -> dict[str, Any]:
    predicted = probabilities(model, [example.text for example in examples]).argmax(1)
    truth = label_numbers(examples, model.labels, file)
    return metrics.classification(truth, predicted.tolist(), model.labels)
