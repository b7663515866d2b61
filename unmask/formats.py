"""Formats of recipe.json: each function upgrades a file from one format to the next, JSON to JSON. Used by `unmask.run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unmask.errors import UserError, require

NEWEST = 3
HEADER = ("format", "written_by", "files")  # fields of recipe.json that are not part of the recipe


def upgraded(data: Any, where: str) -> Any:
    """Upgrade the content of a recipe.json to the newest format; returns the recipe without the header."""
    if not isinstance(data, dict) or data.get("part") != "unmask.recipe.Recipe":
        return data
    number = data.get("format", 1)
    require(
        isinstance(number, int) and number >= 1,
        "{where} is damaged: its format is {number!r}, but formats are numbered 1 to {newest}",
        where=where,
        number=number,
        newest=NEWEST,
    )
    writer = data.get("written_by")
    needed = f"unmask {writer} wrote it: install that version, or a newer one" if writer else "install a newer unmask"
    require(
        number <= NEWEST,
        "{where} has format {number}, but this version of unmask reads formats 1 to {newest}: {needed}",
        where=where,
        number=number,
        newest=NEWEST,
        needed=needed,
    )
    try:
        for step in _STEPS[number - 1 :]:
            data = step(data)
    except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
        raise UserError(
            "{where} is damaged or not a recipe: a Recipe of format {number} needs {error}",
            where=where,
            number=number,
            error=error,
        ) from None
    return {key: value for key, value in data.items() if key not in HEADER}


def _rows_per_stage(data: dict[str, Any]) -> dict[str, Any]:
    """1 to 2: all stages had the same number of tokens per step; now each stage has a number of rows."""
    tokens, rest = data["batch_tokens"], {key: value for key, value in data.items() if key != "batch_tokens"}
    stages = [stage | {"rows": max(1, tokens // stage["length"])} for stage in data["schedule"]]
    filled: dict[str, Any] = _filled_in(rest | {"schedule": stages, "shrink": False})
    return filled


def _filled_in(value: Any) -> Any:
    """1 to 2: add new values to parts, with the behaviour that they had before."""
    if isinstance(value, list):
        return [_filled_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _filled_in(item) for key, item in value.items()}
    part = str(value.get("part", "")).rpartition(".")[2]
    if part == "Mask":  # these units had one draw for the whole unit
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
    """2 to 3: the name of a part held its module; now it holds only the package, so that files may move."""
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
    values: dict[str, Any] = {
        renamed.get(str(key), str(key)): _public_names(item) for key, item in value.items() if key != "part"
    }
    rewrite: Callable[[dict[str, Any]], Any] = _REWRITTEN.get(part, dict)
    return rewrite({"part": part} | values)


def _masked(value: dict[str, Any]) -> Any:
    """2 to 3: masking became the rule `Masked`, with a part `replace` that edits the hidden tokens."""
    if value.get("replace") or "units" not in value:
        return value
    how = {name: value[name] for name in ("mask", "random", "draw", "random_from")}
    replace = {"part": "unmask.hide.Mask"} | how if value["mask"] or value["random"] else {"part": "unmask.hide.Keep"}
    rule = {"part": "unmask.hide.Masked", "at": "same", "replace": replace}
    first = rule | {name: value[name] for name in ("units", "budget", "copies")}
    shuffle = value["shuffle"]
    if not shuffle["budget"]:
        return first
    runs = {"part": "unmask.hide.Runs", "size": shuffle["size"]}
    second = {"units": runs, "budget": shuffle["budget"], "replace": {"part": "unmask.hide.Shuffle"}}
    return [first, first | second]


def _targets_by_name(value: dict[str, Any]) -> dict[str, Any]:
    """2 to 3: targets got names."""
    ahead = value.get("ahead", 1)
    rest = {key: item for key, item in value.items() if key != "ahead"}
    return rest | {"target": "tokens" if ahead == 1 else f"ahead_{ahead}"}


_VIEWS = {"prefix": ("Prefix", [4, 5]), "left": ("LeftToRight", [2, 2]), "right": ("RightToLeft", [3, 3])}


def _tracks(data: dict[str, Any]) -> dict[str, Any]:
    """2 to 3: rows with different views became tracks."""
    see = data["see"]
    if see["part"] != "unmask.see.Mixed":
        return data
    part = {"part": "unmask.recipe.Track", "arrange": None, "hide": None, "predict": ["tokens"]}
    views = {name: {"part": f"unmask.see.{kind}"} for name, (kind, _) in _VIEWS.items()}
    tracks = {
        name: part | {"share": see[name], "see": views[name], "segments": segments}
        for name, (_, segments) in _VIEWS.items()
        if see[name]
    }
    writes = {"writes_with": "prefix"} if "prefix" in tracks else {}
    return data | {"see": {"part": "unmask.see.Everything"}, "tracks": tracks} | writes


_POSITIONS = {"learned": "unmask.backbone.Learned", "sinusoidal": "unmask.backbone.Sinusoidal"}


def _positions_as_parts(values: dict[Any, Any]) -> dict[str, Any]:
    """2 to 3: the positions of a Transformer were a word and a field `every`; now they are a part."""
    rest = {key: value for key, value in values.items() if key not in ("positions", "every")}
    word = values.get("positions", "learned")
    return rest | {"positions": {"part": _POSITIONS.get(word, word), "every": values.get("every", False)}}


_REWRITTEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unmask.backbone.Transformer": _positions_as_parts,
    "unmask.hide.Mask": _masked,
    "unmask.predict.Tokens": _targets_by_name,
    "unmask.recipe.Recipe": _tracks,
}


def _task_of(data: dict[str, Any]) -> dict[str, Any] | None:
    """2 to 3: the task of an adapted run, recognised by its heads; None for a run that was not adapted."""

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
    """2 to 3: the names of labels moved from the head to the task. Parts get their public names."""
    gone = ("names", "orders", "texts")
    heads = {
        name: {key: value for key, value in part.items() if not str(part["part"]).endswith(".Label") or key not in gone}
        for name, part in data["predict"].items()
    }
    named: dict[str, Any] = _public_names(data | {"predict": heads})
    return named | {"task": _task_of(data)}


_STEPS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (_rows_per_stage, _named_task)
