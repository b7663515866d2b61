"""Find the texts of an index that are nearest to a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unmask.errors import require
from unmask.infer.embed import embed
from unmask.infer.model import Model
from unmask.infer.passes import Noted
from unmask.search.index_folder import Index
from unmask.search.nearest import search_nearest
from unmask.search.rerank import rerank


@dataclass(frozen=True)
class Found:
    """A text that was found."""

    id: str
    text: str
    score: float  # the cosine with the query; after re-ranking, the score or probability that the other model gives
    cosine: float  # with the query


def find(
    index: Index, model: Model, queries: Sequence[str], *, k: int = 10, cross: Model | None = None, first: int = 100
) -> Noted[list[list[Found]]]:
    """For each query the `k` best texts, the best first. `cross`: a model that re-ranks the `first` nearest texts."""
    require(k >= 1, "k must be 1 or more, got {k}", k=k)
    require(
        cross is None or first >= k,
        "first is how many texts are re-ranked, so it must not be below k={k}, got {first}",
        k=k,
        first=first,
    )
    vectors = embed(model, queries, dims=index.about.dims)
    scores, numbers = search_nearest(index.nearest, index.about.kind, vectors.value, first if cross else k)
    near = [
        [
            Found(index.ids[number], index.texts[number], score, score)
            for score, number in zip(row.tolist(), places.tolist(), strict=True)
            if number >= 0
        ]
        for row, places in zip(scores, numbers, strict=True)
    ]
    if cross is not None:
        near = [_reranked(cross, query, found) for query, found in zip(queries, near, strict=True)]
    return Noted([found[:k] for found in near], vectors.notes)


def _reranked(cross: Model, query: str, found: list[Found]) -> list[Found]:
    scores = rerank(cross, query, [one.text for one in found])
    new = [replace(one, score=score) for one, score in zip(found, scores, strict=True)]
    return sorted(new, key=lambda one: -one.score)
