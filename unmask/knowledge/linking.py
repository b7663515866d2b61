"""A linker for the graph of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unmask.knowledge.folder import open_folder
from unmask.text.links import KnownEntities, Linker


def linker_of(folder: str | Path, by: str = "prior") -> Linker:
    """The linker of a graph's vectors. `by`: how it chooses between entities of one name."""
    graph = open_folder(folder)
    vectors = graph.vectors.entities.numpy()
    return Linker(
        KnownEntities(graph.entities, graph.names, np.array(graph.triples), vectors, graph.about.fingerprint), by
    )
