"""A model on a task, scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask import metrics
from unmask.data.given import Text
from unmask.infer.choose import right
from unmask.infer.classify import probabilities
from unmask.infer.generate import Sampling
from unmask.infer.model import Model
from unmask.infer.write import write
from unmask.tasks import choose, classify
from unmask.tasks import write as writing
from unmask.tasks.classify import Example, label_numbers


def evaluate_file(model: Model, file: str | Path) -> dict[str, Any]:
    """The scores of an adapted model on a file of its task: labels, choices, or texts to be written."""
    if model.chooses:
        questions = choose.read(file)
        return {"examples": len(questions), "accuracy": right(model, questions)}
    if not model.labels and model.recipe.see.writes == "second":  # type: ignore[attr-defined]
        return evaluate_writing(model, writing.read(file))
    return evaluate_examples(model, classify.read(file), file)


def evaluate_examples(model: Model, examples: list[Example], file: str | Path = "the examples") -> dict[str, Any]:
    """Accuracy, F1, MCC and the confusion matrix."""
    predicted = probabilities(model, [example.text for example in examples]).argmax(1)
    truth = label_numbers(examples, model.labels, file)
    return metrics.classification(truth, predicted.tolist(), model.labels)


def evaluate_writing(model: Model, pairs: list[Text]) -> dict[str, Any]:
    """The likeliest text for each source, against its target: ROUGE-L over tokens, and how many are exactly right."""
    targets = [model.tokenizer.encode(pair.b or "") for pair in pairs]
    longest = min(max(map(len, targets)) + 8, model.length // 2)
    texts = ["".join(write(model, pair.a, tokens=longest, sampling=Sampling(temperature=0))) for pair in pairs]
    written = [model.tokenizer.encode(text) for text in texts]
    both = list(zip(targets, written, strict=True))
    return {
        "examples": len(pairs),
        "rouge_l": sum(metrics.rouge_l(t, w) for t, w in both) / len(both),
        "exact": sum(t == w for t, w in both) / len(both),
        "written": texts,
    }
