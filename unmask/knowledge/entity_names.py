"""The names under which texts speak of entities: a file of ids and names, for graphs whose triples hold only ids."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require
from unmask.text.documents import suffixes
from unmask.text.lines import numbered_lines

_WANTED = {
    ".jsonl": '{"id": ID, "label": NAME}, and more names as a list "aliases" if there are any',
    ".tsv": "ID, a tab, NAME",
}


def read_names(file: Path | None, entities: Sequence[str]) -> tuple[list[list[str]], Counter[str]]:
    """The names of each entity, the usual one first; and notes. Without a file, and without a line, the id is the name."""
    found: dict[str, dict[str, None]] = {entity: {} for entity in entities}  # a dict keeps the order
    notes: Counter[str] = Counter()
    for entity, names in _lines(file) if file is not None else ():
        if entity in found:
            found[entity].update(dict.fromkeys(names))
        else:
            notes["lines of --names about an entity that no triple has, left out"] += 1
    lacking = sum(not names for names in found.values())
    if file is not None and lacking:
        notes["entities without a name in --names: their id is their name"] = lacking
    return [list(names) or [entity] for entity, names in found.items()], notes


def _lines(file: Path) -> Any:
    kind = suffixes(file)[0]
    require(
        kind in _WANTED, "--names {file} has an unknown format: give .jsonl or .tsv, plain or compressed", file=file
    )
    for number, line in numbered_lines(file):
        if not line.strip():
            continue
        entity, names = _from_json(line) if kind == ".jsonl" else _from_columns(line)
        names = [" ".join(name.split()) for name in names]
        if not entity or not all(names):
            raise UserError(
                "{file}, line {number:,}: the line must have an entity and its name, {wanted}; got {line!r}",
                file=file,
                number=number,
                wanted=_WANTED[kind],
                line=line[:40],
            )
        yield entity, names


def _from_json(line: str) -> tuple[str, list[str]]:
    try:
        read = json.loads(line)
        names = [
            name for name in (read["label"], *read.get("aliases", [])) if name is not None
        ]  # null: it has no label
        entity = read["id"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return "", []
    return (" ".join(entity.split()), names) if all(isinstance(one, str) for one in (entity, *names)) else ("", [])


def _from_columns(line: str) -> tuple[str, list[str]]:
    columns = line.split("\t")
    return (" ".join(columns[0].split()), [columns[1]]) if len(columns) == 2 else ("", [])
