"""Cross-validation: each part of the examples is answered by a model that was trained on the others.

These answers give a score without a dev set, and they find labels that are probably wrong: the model is sure of another
label, although it has never seen this one (Northcutt et al. 2021)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask import chance
from unmask.axes import Task
from unmask.errors import require
from unmask.infer.answer import TaskReader
from unmask.infer.model import Model
from unmask.tasks import Prediction
from unmask.trials.trial import Adapt, Trial, place_beside, spread

SUSPECTS = "suspects.jsonl"


def split(examples: Sequence[Any], folds: int, seed: int) -> list[np.ndarray]:
    """The numbers of the examples in each fold, in random order. Each label is spread evenly over the folds."""
    require(
        2 <= folds <= len(examples),
        "--folds must be between 2 and the number of examples, {count:,}; got {folds}",
        count=len(examples),
        folds=folds,
    )
    order = chance.generator(seed, chance.purpose("folds")).permutation(len(examples))
    labels = [str(getattr(examples[number], "label", None)) for number in order]
    sorted_order = order[np.argsort(np.array(labels), kind="stable")]  # examples with the same label follow each other
    return [np.sort(sorted_order[number::folds]) for number in range(folds)]


def cross_validate(
    adapt: Adapt, open_model: Callable[[Path], Model], examples: Sequence[Any], out: Path, folds: int, seed: int
) -> dict[str, Any]:
    """Adapt once for each fold, on all other folds, then on all examples; `out` holds the last model.

    Returns the score of each fold, the scores of all answers together, and `suspects`: examples whose label is probably
    wrong, which are also written to `out`."""
    parts = split(examples, folds, seed)
    answers: list[Any] = [None] * len(examples)
    scores: list[float] = []
    task: Task | None = None
    for number, part in enumerate(parts, 1):
        rest = np.setdiff1d(np.arange(len(examples)), part)
        held = [examples[i] for i in part]
        with place_beside(out) as place:
            last = adapt(Trial(f"fold {number} of {folds}", [examples[i] for i in rest], place, seed=seed))
            if last.get("stopped"):
                return {"folds": scores, "stopped": True}
            model = open_model(place)
            task, reader = model.recipe.task, TaskReader(model)
            assert task is not None
            judged = task.judge(reader, held)
            for i, one in zip(part.tolist(), judged.answers or task.answer(reader, held).answers, strict=True):
                answers[i] = one
            scores.append(judged.score)
    last = adapt(Trial("all examples", examples, out, seed=seed))
    model = open_model(out)
    assert task is not None
    together = task.score(TaskReader(model), examples, answers)
    found = suspects(examples, answers)
    if found:
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in found]
        (out / SUSPECTS).write_text("".join(lines), encoding="utf-8")
    return {"folds": scores, "together": together, "suspects": found, "stopped": bool(last.get("stopped"))} | spread(
        scores
    )


def suspects(examples: Sequence[Any], answers: Sequence[Any]) -> list[dict[str, Any]]:
    """The examples that a model is surer about than its usual sureness of that label, with another label than theirs.

    Worst first. Empty for a task whose answers are no labels of examples."""
    if not all(isinstance(one, Prediction) for one in answers) or not all(hasattr(e, "label") for e in examples):
        return []
    usual: dict[str, float] = {}
    for name in {one.label for one in answers}:
        of_label = [a.probabilities[name] for e, a in zip(examples, answers, strict=True) if e.label == name]
        usual[name] = float(np.mean(of_label)) if of_label else 1.0
    found = [
        {"where": example.where, "label": example.label, "predicted": one.label,
         "probability": round(one.probability, 4), "of_label": round(one.probabilities.get(example.label, 0.0), 4),
         "text": " | ".join(example.shown)}
        for example, one in zip(examples, answers, strict=True)
        if one.label != example.label and one.probability >= usual[one.label]
    ]  # fmt: skip
    return sorted(found, key=lambda one: one["of_label"] - one["probability"])
