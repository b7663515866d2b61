"""The fields of a pipeline file: which there are, and their types. An unknown or wrong field is an error that names its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from unmask.errors import unknown
from unmask.pipeline.description import UNTRAINED
from unmask.pipeline.toml_file import TomlFile
from unmask.type_check import fits, spell

Texts = str | tuple[str, ...]

PIPELINE: dict[str, Any] = {
    "out": str, "recipe": str, "size": str, "variant": str, "budget": str, "tokenizer": str, "lexicon": Texts, "set": Texts,
}  # fmt: skip
PRETRAINS: dict[str, Any] = {
    "from": str, "text": Texts, "lines": bool, "labelled": Texts, "triples": Texts, "names": str, "ask": Literal["tail", "relation", "both"], "mix": float, "graph": Texts,
    "recipe": str, "set": Texts, "share": float, "budget": str,
}  # fmt: skip
ADAPTS: dict[str, Any] = {
    "from": str, "train": str, "dev": str, "test": str, "task": str, "tune": str, "set": Texts, "seeds": int,
    "text_column": Texts, "label_column": str, "unlabelled": Texts,
}  # fmt: skip
OF_A_FILE = ("dev", "test", "task", "tune", "text_column", "label_column", "unlabelled")  # not for a folder of tasks
READS = ("text", "triples", "labelled")  # a stage that pretrains has one of these
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NAMES: dict[Any, str] = {str: "a text in quotes", Texts: "a text in quotes, or a list of them"}


def stage_tables(file: TomlFile) -> dict[str, dict[str, Any]]:
    """The tables of the stages by name. The fields of the file and of every stage are checked."""
    tables = {name: value for name, value in file.data.items() if isinstance(value, dict)}
    values = {name: value for name, value in file.data.items() if name not in tables}
    _check(file, (), values, PIPELINE, "field of a pipeline")
    file.require(
        bool(tables),
        (),
        "there is no stage: begin one with [NAME], and say what it reads: text, triples, labelled or train",
    )
    for name, table in tables.items():
        file.require(
            name not in PIPELINE,
            (name,),
            "{name} is a field of the pipeline, and no stage: write {name} = VALUE, or give the stage another name",
            name=name,
        )
        file.require(
            bool(_NAME.fullmatch(name)) and name != UNTRAINED,
            (name,),
            "the name of a stage is made of letters, digits, - and _ (and is not {untrained}), got {name!r}",
            name=name,
            untrained=UNTRAINED,
        )
        _check_kind(file, name, table)
    return tables


def adapts(table: Mapping[str, Any]) -> bool:
    """Whether a stage adapts the model to a task; otherwise it pretrains."""
    return "train" in table


def _check_kind(file: TomlFile, name: str, table: dict[str, Any]) -> None:
    reads = [field for field in READS if field in table]
    file.require(
        not (adapts(table) and reads),
        (name, reads[0] if reads else ""),
        "[{name}] has {field}, which pretrains, and train, which adapts: make two stages of it",
        name=name,
        field=reads[0] if reads else "",
    )
    known = ADAPTS if adapts(table) else PRETRAINS
    others, kind = (
        (PRETRAINS, f"pretrain (they have {', '.join(READS[:-1])} or {READS[-1]})")
        if adapts(table)
        else (ADAPTS, "adapt (they have train)")
    )
    for field in table:
        file.require(
            field in known or field not in others or not (reads or adapts(table)),
            (name, field),
            "{field} is a field of stages that {kind}, and [{name}] is none: leave it out",
            field=field,
            kind=kind,
            name=name,
        )
    both = known if reads or adapts(table) else PRETRAINS | ADAPTS
    _check(file, (name,), table, both, "field of a stage")
    file.require(
        bool(reads) or adapts(table),
        (name,),
        "[{name}] reads nothing: give text, triples or labelled to pretrain on them, or train to adapt to a task",
        name=name,
    )


def _check(
    file: TomlFile, before: tuple[str, ...], values: Mapping[str, Any], known: Mapping[str, Any], kind: str
) -> None:
    """Refuse fields with unknown names or wrong types."""
    for name, value in values.items():
        if name not in known:
            file.fail((*before, name), str(unknown(kind, name, known)))
        hint = known[name]
        file.require(
            fits(value, hint) and value not in ("", []),
            (*before, name),
            "{name} must be {spelled}, got {value!r:.60}",
            name=name,
            spelled=_NAMES.get(hint) or spell(hint),
            value=value,
        )


def texts_of(value: Any) -> tuple[str, ...]:
    """One text or several, as a tuple; none if the field is not given."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
