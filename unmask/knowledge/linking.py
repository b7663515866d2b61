"""A linker for the graph of a folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from unmask.knowledge.folder import open_folder
from unmask.text.links import KnownEntities, Linker


@lru_cache(maxsize=4)
def known_linker(folder: Path, by: str) -> Linker:
    """The linker of a run's graph. It is kept in memory: building it takes seconds for a large graph."""
    return linker_of(folder, by)


def linker_of(folder: str | Path, by: str = "prior") -> Linker:
    """The linker of a graph's vectors. `by`: how it chooses between entities of one name."""
    graph = open_folder(folder)
    vectors = graph.vectors.entities.numpy()
    return Linker(
        KnownEntities(graph.entities, graph.names, np.array(graph.triples), vectors, graph.about.fingerprint), by
    )
