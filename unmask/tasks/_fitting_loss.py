"""Which loss fits the examples of an embedding task, and which settings a loss uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from unmask.errors import require
from unmask.tasks._compared import Compared

Loss = Literal["softmax", "cosine", "negatives", "dropout", "neighbour"]
_LABELLED = ("softmax", "cosine")  # losses that read a label; the others compare with the batch
_IN_BATCH = ("negatives", "dropout", "neighbour")
_USED_BY = {
    "labels": ("softmax",),
    "balance": ("softmax",),
    "weights": ("softmax",),
    "low": ("cosine",),
    "high": ("cosine",),
    "scale": _IN_BATCH,
    "temperature": ("softmax",),
}


def loss_for(examples: Sequence[Compared]) -> Loss:
    """The loss that the columns ask for: cosine for numbers, softmax for classes, negatives without labels."""
    if examples[0].label is None:
        return "negatives"
    return "cosine" if are_numbers(examples) else "softmax"


def are_numbers(examples: Sequence[Compared]) -> bool:
    """Whether the labels are numbers and not classes: each is a number, and at least one has a decimal point."""
    found = [example.number for example in examples]
    return None not in found and any(not str(example.label).lstrip("+-").isdigit() for example in examples)


def check_loss(loss: Loss, examples: Sequence[Compared], *, per_step: int) -> None:
    """Refuse a loss that cannot be computed from the examples. `per_step`: examples in a step."""
    first = examples[0]
    require(
        loss not in _LABELLED or first.label is not None,
        "{where}: loss={loss} needs a label for each pair, and there is none: add the column, name it with --label, or set "
        "loss=negatives",
        where=first.where or "the first example",
        loss=loss,
    )
    more = next((example for example in examples if loss in _LABELLED and len(example.texts) > 2), None)
    require(
        more is None,
        "{where}: loss={loss} compares two texts, and the example has a negative too: leave the negative out, or set "
        "loss=negatives",
        where=more.where if more else "",
        loss=loss,
    )
    wrong = next((example for example in examples if loss == "cosine" and example.number is None), None)
    require(
        wrong is None,
        "{where}: loss=cosine needs a number for each pair, got {label!r}: give numbers, or set loss=softmax",
        where=wrong.where if wrong else "",
        label=wrong.label if wrong else "",
    )
    require(
        loss in _LABELLED or min(per_step, len(examples)) > 1 or len(first.texts) > 2,
        "loss={loss} compares with the other examples of a step, and a step has only one: set examples=2 or more, or give "
        "more examples",
        loss=loss,
    )


def check_settings(loss: Loss, settings: Mapping[str, Any]) -> None:
    """Refuse settings that a loss does not use."""
    for name, value in settings.items():
        require(
            value in (None, ()) or loss in _USED_BY[name],
            "{name} has no effect with loss={loss}, only with {losses}: leave {name} out",
            name=name,
            loss=loss,
            losses=" or ".join(_USED_BY[name]),
        )
