"""Word vectors: word2vec, fastText and GloVe trained on a corpus; their files; what they know."""

from unmask.vectors.from_counts import FromCounts
from unmask.vectors.making import KINDS, VectorTraining, make_vectors
from unmask.vectors.nearest import Coverage, Near, analogy, coverage, nearest
from unmask.vectors.start import FromVectors
from unmask.vectors.vector_file import WordVectors, read_vectors, write_vectors

__all__ = [
    "KINDS", "Coverage", "FromCounts", "FromVectors", "Near", "VectorTraining", "WordVectors", "analogy", "coverage", "make_vectors", "nearest", "read_vectors",
    "write_vectors",
]  # fmt: skip
