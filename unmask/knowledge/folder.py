"""The folder of a graph's vectors: the vectors, the names of entities and relations, and graph.json, which says how they
were learned and how good they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import UserError, require
from unmask.knowledge.graph import Graph, fingerprint
from unmask.knowledge.learn import Training, Vectors
from unmask.text.atomic_write import check_free, drafted
from unmask.train import checkpoint
from unmask.type_check import check_types

ABOUT, VECTORS, ENTITIES, RELATIONS = "graph.json", "vectors.safetensors", "entities.jsonl", "relations.jsonl"
FORMAT = 1


@dataclass(frozen=True)
class About:
    """What graph.json says."""

    format: int  # of the folder
    fingerprint: str  # of the entities
    entities: int
    relations: int
    triples: int  # that were trained on
    dims: int
    training: dict[str, Any]
    scores: dict[str, float]  # on the test triples; {}: there are none
    tested: int  # test triples


@dataclass(frozen=True)
class GraphVectors:
    """The vectors of a graph, with the names of what they are vectors of."""

    folder: Path
    about: About
    entities: tuple[str, ...]  # ids
    relations: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # of each entity, the usual one first
    triples: tuple[int, ...]  # of each entity: how many it is in
    vectors: Vectors


def claim(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that vectors must not be written to, before any work is done."""
    check_free(out, overwrite=overwrite, folder=True, marker=ABOUT)


def write_folder(
    out: Path, graph: Graph, names: Sequence[Sequence[str]], vectors: Vectors, training: Training, scores: dict[str, float],
) -> About:  # fmt: skip
    """Write the folder as a whole; it replaces an existing one."""
    train, tested = graph.splits["train"], len(graph.splits["test"])
    counts = np.bincount(train[:, [0, 2]].ravel(), minlength=len(graph.entities)).tolist()
    about = About(
        FORMAT, graph.fingerprint, len(graph.entities), len(graph.relations), len(train), training.dims, _plain(training),
        scores, tested,
    )  # fmt: skip
    with drafted(out, folder=True) as draft:
        _write_lines(
            draft / ENTITIES,
            [{"id": i, "names": list(n), "triples": c} for i, n, c in zip(graph.entities, names, counts, strict=True)],
        )
        _write_lines(draft / RELATIONS, [{"id": relation} for relation in graph.relations])
        tensors = {"entities": vectors.entities.cpu(), "relations": vectors.relations.cpu()}
        checkpoint.save_tensors(tensors, draft / VECTORS)
        (draft / ABOUT).write_text(json.dumps(asdict(about), indent=1), encoding="utf-8")
    return about


def open_folder(folder: str | Path) -> GraphVectors:
    """Open the vectors of a graph, and refuse files that do not belong together."""
    folder = Path(folder)
    about = read_about(folder)
    rows = _read_lines(folder / ENTITIES)
    entities = tuple(row["id"] for row in rows)
    relations = tuple(row["id"] for row in _read_lines(folder / RELATIONS))
    tensors = checkpoint.read(folder / VECTORS)
    vectors = Vectors(tensors["entities"], tensors["relations"])
    require(
        fingerprint(entities) == about.fingerprint
        and vectors.entities.shape == (about.entities, about.dims)
        and vectors.relations.shape == (about.relations, about.dims),
        "{folder} is damaged, its files do not belong together: make it again with 'unmask graph'",
        folder=folder,
    )
    names, triples = tuple(tuple(row["names"]) for row in rows), tuple(row["triples"] for row in rows)
    return GraphVectors(folder, about, entities, relations, names, triples, vectors)


def read_about(folder: Path) -> About:
    path = folder / ABOUT
    require(
        path.is_file(),
        "no vectors of a graph at {folder}: make them with 'unmask graph TRIPLES --out {folder}'",
        folder=folder,
    )
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError("{path} is damaged: {error}; make it again", path=path, error=error) from None
    require(
        isinstance(values, dict) and values.get("format") == FORMAT and set(values) == {f.name for f in fields(About)},
        "{path} is damaged, or of another version of unmask (this version reads format {format}): make it again with "
        "'unmask graph'",
        path=path,
        format=FORMAT,
    )
    kinds = {"fingerprint": str, "entities": int, "relations": int, "dims": int}
    check_types(kinds, {name: values[name] for name in kinds}, f"{path} is damaged: ")
    return About(**values)


def _plain(training: Training) -> dict[str, Any]:
    return asdict(training) | {"model": {"name": type(training.model).__name__} | vars(training.model)}  # type: ignore[call-overload]


def _write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, ValueError) as error:
        raise UserError(
            "{path} is damaged: {error}; make it again with 'unmask graph'", path=path, error=error
        ) from None
