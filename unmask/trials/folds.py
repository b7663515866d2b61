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
from unmask.axes import Graded, Missed, Task
from unmask.errors import require
from unmask.infer.answer import TaskReader
from unmask.infer.model import Model
from unmask.trials.trial import Adapt, Trial, place_beside, spread

SUSPECTS = "suspects.jsonl"
FAR = 3.0  # deviations from the usual error: so far from the prediction, a number is to be checked
_DEVIATION = 1.4826  # times the median distance to the median is the standard deviation, if errors are normal


def split(
    kinds: Sequence[str], folds: int, seed: int, groups: Sequence[Sequence[int]] | None = None
) -> list[np.ndarray]:
    """The numbers of the examples in each fold, in random order. `kinds`: of each example; each kind is spread evenly.
    `groups`: the numbers of examples that stay together; None: each example is alone."""
    groups = [[number] for number in range(len(kinds))] if groups is None else groups
    require(
        2 <= folds <= len(groups),
        "--folds must be between 2 and the number of {what}, {count:,}; got {folds}",
        what="examples"
        if len(groups) == len(kinds)
        else "groups of examples that belong together (about the same text or query)",
        count=len(groups),
        folds=folds,
    )
    order = chance.generator(seed, chance.purpose("folds")).permutation(len(groups))
    of_groups = np.array([kinds[numbers[0]] for numbers in groups])
    sorted_order = order[np.argsort(of_groups[order], kind="stable")]  # groups of the same kind follow each other
    return [np.sort(np.concatenate([groups[number] for number in sorted_order[fold::folds]])) for fold in range(folds)]


def cross_validate(
    adapt: Adapt, open_model: Callable[[Path], Model], task: Task, examples: Sequence[Any], out: Path, folds: int, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Adapt once for each fold, on all other folds, then on all examples; `out` holds the last model. `task`: it has learned
    from all examples.

    Returns the score of each fold, the scores of all answers together, and `suspects`: examples whose label is probably
    wrong, which are also written to `out`."""
    parts = split(task.kinds(examples), folds, seed, task.groups(examples))
    answers: list[Any] = [None] * len(examples)
    scores: list[float] = []
    metric = ""
    for number, part in enumerate(parts, 1):
        rest = np.setdiff1d(np.arange(len(examples)), part)
        held = [examples[i] for i in part]
        with place_beside(out) as place:
            last = adapt(Trial(f"fold {number} of {folds}", [examples[i] for i in rest], place, seed=seed, folds=folds))
            if last.get("stopped"):
                return {"folds": scores, "stopped": True}
            model = open_model(place)
            own, reader = _task_of(model), TaskReader(model)
            judged = own.judge(reader, held)
            for i, one in zip(part.tolist(), judged.answers or own.answer(reader, held).answers, strict=True):
                answers[i] = one
            metric, score = next(iter(judged.scores.items()))
            scores.append(score)
    last = adapt(Trial("all examples", examples, out, seed=seed, folds=folds))
    model = open_model(out)
    own = _task_of(model)
    together = own.score(TaskReader(model), examples, answers)
    found = suspects(examples, own.graded(examples, answers), classes=all(own.kinds(examples)))
    found += far_numbers(examples, own.missed(examples, answers))
    if found:
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in found]
        (out / SUSPECTS).write_text("".join(lines), encoding="utf-8")
    result = {"folds": scores, "metric": metric, "together": together, "suspects": found}
    return result | {"stopped": bool(last.get("stopped"))} | spread(scores)


def _task_of(model: Model) -> Task:
    assert model.recipe.task is not None
    return model.recipe.task


def suspects(examples: Sequence[Any], graded: Sequence[Graded], *, classes: bool) -> list[dict[str, Any]]:
    """The examples with a wrong answer that the model is surer about than its usual sureness of the right answer.

    `classes`: the usual sureness is that of the class that is answered; otherwise it is that of all examples. Worst first."""
    of_truth: dict[str, list[float]] = {}
    for one in graded:
        of_truth.setdefault(one.truth if classes else "", []).append(one.of_truth)
    usual = {name: float(np.mean(values)) for name, values in of_truth.items()}
    found = [
        {"where": example.where, "label": one.truth, "predicted": one.answer, "probability": round(one.probability, 4),
         "of_label": round(one.of_truth, 4), "text": " | ".join(example.shown)}
        for example, one in zip(examples if graded else (), graded, strict=True)
        if not one.right and one.probability >= usual.get(one.answer if classes else "", 1.0)
    ]  # fmt: skip
    return sorted(found, key=lambda one: one["of_label"] - one["probability"])


def far_numbers(examples: Sequence[Any], missed: Sequence[Missed]) -> list[dict[str, Any]]:
    """The examples whose number is much farther from the prediction than usual, the farthest first.

    The usual error and its deviation are medians, so a few wrong numbers do not change them."""
    if not missed:
        return []
    errors = np.array([one.answer - one.truth for one in missed])
    away = np.abs(errors - np.median(errors))
    limit = FAR * _DEVIATION * float(np.median(away))
    chosen = [int(i) for i in np.argsort(-away, kind="stable") if away[i] > limit > 0]
    return [
        {"where": examples[i].where, "label": round(missed[i].truth, 4), "predicted": round(missed[i].answer, 4),
         "distance": round(missed[i].distance, 4), "text": " | ".join(examples[i].shown)}
        for i in chosen
    ]  # fmt: skip


def suspect_columns(found: Sequence[dict[str, Any]]) -> list[str]:
    """The columns of suspects that are shown."""
    return [name for name in ("label", "predicted", "probability", "distance", "text", "where") if name in found[0]]
