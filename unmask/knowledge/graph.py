"""A knowledge graph in memory: the names of its entities and relations, and its triples as numbers."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask import chance
from unmask.errors import require
from unmask.text.knowledge_graph import triples

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Graph:
    """Triples by split. Entities and relations are sorted by name, so the order of lines and files does not matter."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, np.ndarray]  # by name, M 3 each: head, relation, tail

    @property
    def fingerprint(self) -> str:
        """A hash of the entities in order: numbers of entities mean the same in two graphs with equal fingerprints."""
        return fingerprint(self.entities)

    @property
    def known(self) -> np.ndarray:
        """M 3: the triples of all splits."""
        return np.concatenate(list(self.splits.values()))


def fingerprint(entities: Sequence[str]) -> str:
    found = hashlib.sha256()
    for name in entities:
        found.update(name.encode() + b"\n")
    return found.hexdigest()[:32]


def read_graph(files: dict[str, Sequence[str | Path]]) -> tuple[Graph, Counter[str]]:
    """The graph of some files by split, and notes on what was left out.

    A triple that a split has twice is kept once. A test or dev triple that is also a training triple is left out."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    splits, notes = {}, Counter[str]()
    for split in SPLITS:
        numbers = array("i")  # twelve bytes for each triple
        for file in files.get(split, ()):
            for head, relation, tail in triples(Path(file)):
                numbers.append(entities.setdefault(head, len(entities)))
                numbers.append(relations.setdefault(relation, len(relations)))
                numbers.append(entities.setdefault(tail, len(entities)))
        splits[split] = np.frombuffer(numbers, dtype=np.int32).reshape(-1, 3).astype(np.int64)
    require(
        bool(len(splits["train"])),
        "{files} has no triples: give lines with head, relation and tail",
        files=", ".join(map(str, files["train"])),
    )
    moved_entities, moved_relations = _moved(entities), _moved(relations)
    for split, found in splits.items():
        found[:, [0, 2]] = moved_entities[found[:, [0, 2]]]
        found[:, 1] = moved_relations[found[:, 1]]
    graph = Graph(tuple(sorted(entities)), tuple(sorted(relations)), _distinct(splits, len(relations), notes))
    return graph, notes


def hold_out(graph: Graph, share: float, seed: int) -> Graph:
    """Move a share of the training triples to the test split. Every entity and relation keeps a training triple."""
    require(0 <= share < 1, "--holdout must be in [0, 1), got {share:g}: write 0.05 or 5%", share=share)
    found = graph.splits["train"]
    order = np.argsort(chance.draw(np.arange(len(found)), seed, chance.purpose("held-out triples")), kind="stable")
    wanted, kept = int(share * len(found)), np.ones(len(found), dtype=bool)
    entities = np.bincount(found[:, [0, 2]].ravel(), minlength=len(graph.entities))
    relations = np.bincount(found[:, 1], minlength=len(graph.relations))
    for place in order.tolist():
        if not wanted:
            break
        head, relation, tail = found[place].tolist()
        if relations[relation] < 2 or min(entities[head], entities[tail]) < 2 + (head == tail):
            continue
        entities[head], entities[tail], relations[relation] = (
            entities[head] - 1,
            entities[tail] - 1,
            relations[relation] - 1,
        )
        kept[place], wanted = False, wanted - 1
    return Graph(graph.entities, graph.relations, graph.splits | {"train": found[kept], "test": found[~kept]})


def keys_of(triples: np.ndarray, entities: int, relations: int) -> np.ndarray:
    """M: one number for each triple."""
    keys: np.ndarray = (triples[:, 0] * relations + triples[:, 1]) * entities + triples[:, 2]
    return keys


def _moved(numbers: dict[str, int]) -> np.ndarray:
    """For each number in the order of reading, the number in the order of names."""
    moved = np.empty(len(numbers), dtype=np.int64)
    moved[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    return moved


def _distinct(splits: dict[str, np.ndarray], relations: int, notes: Counter[str]) -> dict[str, np.ndarray]:
    entities = 1 + max(int(found[:, [0, 2]].max(initial=0)) for found in splits.values())
    kept: dict[str, np.ndarray] = {}
    before = np.empty(0, dtype=np.int64)
    for split, found in splits.items():
        keys, first = np.unique(keys_of(found, entities, relations), return_index=True)
        if len(first) < len(found):
            notes[f"{split} triples that repeat another line, left out"] = len(found) - len(first)
        new = ~np.isin(keys, before)
        if not new.all():
            notes[f"{split} triples that an earlier split has too, left out"] = int((~new).sum())
        kept[split], before = found[np.sort(first[new])], np.concatenate((before, keys))
    return kept
