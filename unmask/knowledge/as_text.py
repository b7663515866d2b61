"""Triples as pairs of texts: a network reads two parts of a triple and predicts the third."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from unmask.errors import UserError
from unmask.knowledge.entity_names import read_names
from unmask.knowledge.graph import read_graph
from unmask.text.atomic_write import check_free, drafted
from unmask.text.documents import COMPRESSIONS

Ask = Literal["tail", "relation", "both"]
ASKS: dict[str, Ask] = {"tail": "tail", "relation": "relation", "both": "both"}
_NOT_WORDS = re.compile(r"[/_.]+")


def write_triples(
    files: Sequence[str | Path], out: str | Path, *, ask: Ask = "tail", names: str | Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Write a .jsonl file of pairs (`source`, `target`) for 'unmask prepare'. Returns how many there are, and notes.

    `ask`: what the second text is: the tail, the relation, or one pair for each. `names`: of entities, if triples hold ids."""
    out = Path(out)
    check_free(out, overwrite=overwrite)
    if out.suffix != ".jsonl":
        advice = "compress the file later" if out.suffix in COMPRESSIONS else "give it the name NAME.jsonl"
        raise UserError("triples are written as JSON lines, got --out {out}: {advice}", out=out, advice=advice)
    graph, notes = read_graph({"train": files})
    called, unnamed = read_names(None if names is None else Path(names), graph.entities)
    relations, count = [words_of(name) for name in graph.relations], 0
    with drafted(out) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        for head, relation, tail in graph.splits["train"].tolist():
            for source, target in pairs_of(called[head][0], relations[relation], called[tail][0], ask):
                file.write(json.dumps({"source": source, "target": target}, ensure_ascii=False) + "\n")
                count += 1
    return {
        "file": str(out),
        "triples": len(graph.splits["train"]),
        "pairs": count,
        "notes": dict(notes + Counter(unnamed)),
    }


def pairs_of(head: str, relation: str, tail: str, ask: Ask) -> Iterator[tuple[str, str]]:
    """What is read, and what is predicted."""
    if ask in ("tail", "both"):
        yield f"{head}, {relation}", tail
    if ask in ("relation", "both"):
        yield f"{head}, {tail}", relation


def words_of(relation: str) -> str:
    """The words in the id of a relation: "/people/person/place_of_birth" is "people person place of birth"."""
    return " ".join(_NOT_WORDS.sub(" ", relation).split()) or relation
