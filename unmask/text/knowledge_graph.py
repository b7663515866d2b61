"""A file of a knowledge graph: its triples, and the names in them, which become the entities of a lexicon."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.errors import UserError, require
from unmask.text.documents import HALF, suffixes
from unmask.text.lines import numbered_lines

Triple = tuple[str, str, str]  # head, relation, tail

_LEFT_OUT = {
    "of one character": lambda name: len(name) == 1,
    "of digits only": lambda name: name.isdigit(),
    'that begin like a comment ("# ")': lambda name: name.startswith("# "),
}


def names_in(files: Sequence[str | Path]) -> tuple[list[tuple[str, int]], Counter[str]]:
    """Every name with its number of triples, most frequent first; and the number of names left out, by reason."""
    found: Counter[str] = Counter()
    for file in files:
        for head, _, tail in triples(Path(file)):
            found.update({head, tail})
    notes: Counter[str] = Counter()
    kept = []
    for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        reason = left_out(name)
        if reason is None:
            kept.append((name, count))
        else:
            notes[f"names {reason}, left out"] += 1
    return kept, notes


def left_out(name: str) -> str | None:
    """Why a name is not looked for in texts; None: it is."""
    return next((reason for reason, applies in _LEFT_OUT.items() if applies(name)), None)


def triples(file: Path) -> Iterator[Triple]:
    """The triple of each line. A line is JSON with head, relation and tail, or three columns separated by tabs."""
    require(file.is_file(), "no knowledge graph at {file}: give a file of triples, .jsonl or .tsv", file=file)
    read = {".jsonl": _from_json, ".tsv": _from_columns}.get(suffixes(file)[0])
    if read is None:
        raise UserError(
            ("{file} has an unknown format: give .jsonl or .tsv, plain or compressed (.gz, .xz, .zst)"), file=file
        )
    for number, line in numbered_lines(file):
        if not line.strip():
            continue
        head, relation, tail = (" ".join(name.split()) if isinstance(name, str) else "" for name in read(line))
        if not head or not relation or not tail or HALF.search(head + relation + tail):
            wanted = (
                '{"head": NAME, "relation": NAME, "tail": NAME}'
                if read is _from_json
                else "NAME, a tab, relation, a tab, NAME"
            )
            raise UserError(
                "{file}, line {number:,}: the line must be a triple with two names and a relation, {wanted}; got {line!r}",
                file=file,
                number=number,
                wanted=wanted,
                line=line[:40],
            )
        yield head, relation, tail


def _from_json(line: str) -> tuple[object, object, object]:
    try:
        triple = json.loads(line)
        return triple["head"], triple["relation"], triple["tail"]
    except (ValueError, TypeError, KeyError):
        return None, None, None


def _from_columns(line: str) -> tuple[object, object, object]:
    columns = line.split("\t")
    return (columns[0], columns[1], columns[2]) if len(columns) == 3 else (None, None, None)
