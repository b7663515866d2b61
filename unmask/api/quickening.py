"""Fast models: open a run with weights in 8 bits, and say how well it agrees with float32 on its own dev set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask import infer
from unmask.infer.fast import keep_agreement, quicken, read_about
from unmask.progress import Tell, tell_notice
from unmask.tasks.classify import Columns
from unmask.train import checkpoint

DEV = "dev.json"  # in a run folder: the file of the dev set, and its columns
MOST = 1_000  # dev examples that are compared


def keep_dev(out: Path, file: str | Path, columns: Columns) -> None:
    """Note in a run which dev set it was trained with."""
    found = {"file": str(Path(file).resolve()), "text": list(columns.text), "label": columns.label}
    checkpoint.write_text(json.dumps(found, indent=1), out / DEV)


def opened_fast(model: infer.Model, tell: Tell) -> infer.Model:
    """The same model with weights in 8 bits. The agreement is measured when its file is made, and told each time."""
    examples = dev_examples(model)
    known = read_about(model.folder).get("agreement")
    fast = quicken(model)
    if examples and (fast.made or known is None):
        vectors, model.system.features = model.system.features, None
        expected = infer.answer(model, examples).answers
        model.system.features = vectors
        known = agreement(expected, infer.answer(model, examples).answers)
        keep_agreement(model.folder, known)
    tell_notice(f"{model.folder} in 8 bits: {_said(known)}", tell, depth=2)
    return model


def dev_examples(model: infer.Model) -> list[Any]:
    """The first examples of the dev set that a run was trained with; [] if it is not known or not there any more."""
    file = model.folder / DEV
    if model.recipe.task is None or not file.is_file():
        return []
    known = json.loads(file.read_text(encoding="utf-8"))
    place = Path(known["file"])
    columns = Columns.of(known["text"] or None, known["label"])
    return infer.task_of_model(model).read(place, columns, labelled=False)[0][:MOST] if place.is_file() else []


def agreement(expected: Sequence[Any], found: Sequence[Any]) -> dict[str, Any]:
    """How many answers are the same. Of answers that are only numbers, the largest difference."""
    pairs = [(one.columns(1), other.columns(1)) for one, other in zip(expected, found, strict=True)]
    words = [(_words(one), _words(other)) for one, other in pairs]
    numbers = [abs(one[k] - other[k]) for one, other in pairs for k in one if isinstance(one[k], float)]
    same = sum(one == other for one, other in words) if any(one for one, _ in words) else None
    return {"examples": len(pairs), "same": same, "largest_difference": max(numbers, default=0.0)}


def _words(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of an answer that are not numbers."""
    return {name: value for name, value in columns.items() if name != "probabilities" and not isinstance(value, float)}


def _said(known: dict[str, Any] | None) -> str:
    if known is None:
        return "how well it agrees with float32 is not known, because the run has no dev set"
    far = f"their numbers differ by {known['largest_difference']:.4f} at most"
    if known["same"] is None:
        return f"on {known['examples']:,} dev examples, {far}"
    return f"{known['same'] / known['examples']:.1%} of {known['examples']:,} dev answers are those of float32; {far}"
