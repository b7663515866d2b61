"""The nearest vectors by inner product, by faiss: exact (flat), or faster and nearly exact (ivf, hnsw)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask.errors import UserError, require

Kind = Literal["flat", "ivf", "hnsw"]
KINDS: tuple[Kind, ...] = ("flat", "ivf", "hnsw")
MANY = 200_000  # vectors; with more, a flat index is slow
LISTS = 4  # an ivf index has this many times sqrt(vectors) lists
PROBED = 32  # lists that a query looks into
SAMPLES = 64  # vectors per list that the lists are learned from
LINKS, WIDTH = 32, 64  # of hnsw: links per vector, and vectors that a query keeps in view
FEWEST = 39  # vectors per list that faiss wants


def faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise UserError("a search index needs faiss: pip install 'unmask[search]'") from None
    return faiss


def new_nearest(vectors: np.ndarray, kind: Kind | None) -> tuple[Any, Kind]:
    """An index of vectors, and its kind. None: flat for up to 200,000 vectors, otherwise ivf."""
    chosen: Kind = kind or ("flat" if len(vectors) <= MANY else "ivf")
    require(chosen in KINDS, "kind must be flat, ivf or hnsw, got {kind!r}", kind=kind)
    lib, width = faiss(), vectors.shape[1]
    if chosen == "flat":
        index = lib.IndexFlatIP(width)
    elif chosen == "hnsw":
        index = lib.IndexHNSWFlat(width, LINKS, lib.METRIC_INNER_PRODUCT)
    else:
        index = _lists(lib, vectors)
    index.add(vectors)
    return index, chosen


def _lists(lib: Any, vectors: np.ndarray) -> Any:
    """An index whose vectors are sorted into lists; a query looks into the nearest ones."""
    lists = round(LISTS * len(vectors) ** 0.5)
    require(
        len(vectors) >= FEWEST * lists,
        "kind=ivf needs {fewest:,} vectors or more, got {count:,}: use kind=flat",
        fewest=(LISTS * FEWEST) ** 2,
        count=len(vectors),
    )
    index = lib.IndexIVFFlat(lib.IndexFlatIP(vectors.shape[1]), vectors.shape[1], lists, lib.METRIC_INNER_PRODUCT)
    random = np.random.default_rng(0)
    some = min(len(vectors), SAMPLES * lists)
    index.cp.max_points_per_centroid = SAMPLES
    index.train(vectors[np.sort(random.choice(len(vectors), some, replace=False))])
    return index


def search_nearest(index: Any, kind: Kind, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries x k: the inner products and the numbers of the nearest vectors, the best first; -1: there are fewer."""
    if kind == "ivf":
        index.nprobe = min(PROBED, index.nlist)
    elif kind == "hnsw":
        index.hnsw.efSearch = max(WIDTH, k)
    scores, numbers = index.search(np.ascontiguousarray(queries, np.float32), k)
    return scores, numbers


def save_nearest(index: Any, path: Path) -> None:
    faiss().write_index(index, str(path))


def load_nearest(path: Path) -> Any:
    try:
        return faiss().read_index(str(path))
    except RuntimeError:
        raise UserError("{path} is damaged or not an index of faiss: make the index again", path=path) from None
