"""Knowledge: the vectors of a graph's entities and relations, learned from its triples."""

from unmask.knowledge.as_text import write_triples
from unmask.knowledge.folder import About, GraphVectors, open_folder
from unmask.knowledge.learn import Training, Vectors
from unmask.knowledge.linking import linker_of
from unmask.knowledge.make import make_vectors
from unmask.knowledge.models import DistMult, TransE
from unmask.knowledge.rank import ranks, scores_of

__all__ = [
    "About", "DistMult", "GraphVectors", "TransE", "Training", "Vectors", "linker_of", "make_vectors", "open_folder", "ranks", "scores_of", "write_triples",
]  # fmt: skip
