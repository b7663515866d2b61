"""Formats of recipe.json: what an older file must become before it is read. Each function goes one format up, JSON to JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unmask.errors import UserError, require

NEWEST = 3


def upgraded(data: Any, where: str) -> Any:
    """The content of a recipe.json of any earlier format, as the newest one has it."""
    if not isinstance(data, dict) or data.get("part") != "unmask.recipe.Recipe":
        return data
    number = data.get("format", 1)
    require(
        isinstance(number, int) and number >= 1,
        f"{where} is damaged: its format is {number!r}, and formats are numbered 1 to {NEWEST}",
    )
    require(
        number <= NEWEST,
        f"{where} has format {number}, and this version of unmask reads formats 1 to {NEWEST}: install a newer unmask",
    )
    try:
        for step in _STEPS[number - 1 :]:
            data = step(data)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
        raise UserError(f"{where} is damaged or not a recipe: a Recipe of format {number} needs {error}") from None
    return {key: value for key, value in data.items() if key != "format"}


def _rows_per_stage(data: dict[str, Any]) -> dict[str, Any]:
    """1 to 2: one number of tokens served all stages; now each stage has its rows."""
    tokens, rest = data["batch_tokens"], {key: value for key, value in data.items() if key != "batch_tokens"}
    stages = [stage | {"rows": max(1, tokens // stage["length"])} for stage in data["schedule"]]
    filled: dict[str, Any] = _filled_in(rest | {"schedule": stages, "shrink": False})
    return filled


def _filled_in(value: Any) -> Any:
    """1 to 2: values that parts did not have, as they were in effect."""
    if isinstance(value, list):
        return [_filled_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _filled_in(item) for key, item in value.items()}
    part = str(value.get("part", "")).rpartition(".")[2]
    if part == "Mask":  # one draw for each unit
        units = str(value["units"]["part"]).rpartition(".")[2]
        return {
            "draw": "span" if units in ("Words", "Spans", "Levels") else "token",
            "random_from": "vocabulary",
        } | filled
    if part == "TransformerXL":
        return {"projection_deviation": value["deviation"]} | filled
    return {"initial": "layers"} | filled if part == "Replaced" else filled


_RENAMED_PARTS = {
    "unmask.data.Stream": "unmask.data.FullRows",
    "unmask.data.Streams": "unmask.data.ContinuingRows",
    "unmask.data.Continued": "unmask.data.ContinuingPairs",
    "unmask.data.Given": "unmask.data.FromTask",
    "unmask.predict.Boundary": "unmask.predict.SpanBoundary",
    "unmask.predict.Copy": "unmask.predict.AllTokens",
    "unmask.predict.Layers": "unmask.predict.EveryLayer",
    "unmask.train.Line": "unmask.curves.Linear",
    "unmask.train.Decay": "unmask.curves.Exponential",
    "unmask.train.Until": "unmask.curves.Until",
    "unmask.train.InTurn": "unmask.curves.InTurn",
}
_RENAMED_VALUES = {
    "unmask.backbone.Transformer": {"scaled": "scaled_init"},
    "unmask.backbone.TransformerXL": {"scaled": "scaled_embeddings", "tied": "shared_biases"},
}


def _public_names(value: Any) -> Any:
    """2 to 3: a part was written with the module that holds it; now with the package, so that files may move."""
    if isinstance(value, list):
        return [_public_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "part" not in value:
        return {key: _public_names(item) for key, item in value.items()}
    module, _, name = str(value["part"]).rpartition(".")
    public = ".".join([*module.split(".")[:2], name])
    part = _RENAMED_PARTS.get(public, public)
    renamed = _RENAMED_VALUES.get(part, {})
    values = {renamed.get(key, key): _public_names(item) for key, item in value.items() if key != "part"}
    return {"part": part} | values


def _task_of(data: dict[str, Any]) -> dict[str, Any] | None:
    """2 to 3: the task of an adapted run, told by its heads; None for a run that was not adapted."""

    def name(part: dict[str, Any]) -> str:
        return str(part["part"]).rpartition(".")[2]

    heads = {name(part): part for part in data["predict"].values()}
    head = heads.get("Label") or heads.get("Choice")
    writes = name(data["hide"].get("units") or {"part": ""}) == "Second"
    if name(data["arrange"]) != "Given" or not (head or writes):
        return None
    length = data.get("reads") or data["schedule"][0]["length"]
    if head is None:
        return {"part": "unmask.tasks.Write", "length": length, "hidden": data["hide"]["budget"]}
    activation = head["activation"] if head["pooler"] else None
    values = {"length": length, "dropout": head["dropout"], "pooler": head["pooler"], "activation": activation}
    if name(head) == "Choice":
        return {"part": "unmask.tasks.Choose"} | values
    labels = head.get("names") or [f"LABEL_{i}" for i in range(head["classes"])]
    both = {"orders": head.get("orders", "one"), "texts": head.get("texts")}
    return {"part": "unmask.tasks.Classify"} | values | both | {"pool": head["pool"], "labels": labels}


def _named_task(data: dict[str, Any]) -> dict[str, Any]:
    """2 to 3: the head for labels held their names; now the task does. Parts get their public names."""
    gone = ("names", "orders", "texts")
    heads = {
        name: {key: value for key, value in part.items() if not str(part["part"]).endswith(".Label") or key not in gone}
        for name, part in data["predict"].items()
    }
    named: dict[str, Any] = _public_names(data | {"predict": heads})
    return named | {"task": _task_of(data)}


_STEPS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (_rows_per_stage, _named_task)
