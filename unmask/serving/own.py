"""Our own routes: answers of any task, search, compare, and models that are loaded while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unmask import infer
from unmask.errors import require
from unmask.infer.fill import with_gaps
from unmask.serving.call import Call, Route
from unmask.serving.models import Served
from unmask.serving.refused import Refused
from unmask.serving.service import Service


@dataclass(frozen=True)
class Examples:
    """The body of /models/NAME/answer: texts, pairs of texts, or objects with the columns of the task's files."""

    examples: tuple[str | tuple[str, ...] | dict[str, Any], ...]
    top: int = 1  # how many answers are given for each example
    truncate: bool = False

    def __post_init__(self) -> None:
        require(self.top >= 1, "top must be 1 or more, got {top}", top=self.top)


@dataclass(frozen=True)
class Search:
    """The body of /search."""

    query: str | tuple[str, ...]
    index: str | None = None  # its name; none: the first one
    k: int = 10
    rerank: str | None = None  # a model that orders the nearest texts again
    first: int = 100  # how many of the nearest texts it reads


@dataclass(frozen=True)
class Compare:
    """The body of /compare: one text, and the models that read it."""

    text: str
    models: tuple[str, ...]
    top: int = 5
    truncate: bool = False


@dataclass(frozen=True)
class Name:
    """The body of /models/load and /models/unload."""

    model: str


async def answer(call: Call) -> Any:
    """The answers of the model's task, as `unmask predict --json` gives them."""
    body: Examples = call.body
    served = call.service.models.able("answer", call.path["model"])
    found = await call.service.answer(served, body.examples, truncate=body.truncate)
    return [one.as_json(body.top) for one in found]


async def search(call: Call) -> Any:
    """The texts of an index that are nearest to each query."""
    body: Search = call.body
    service, indexes = call.service, call.service.indexes
    if not indexes:
        raise Refused(422, "there is no index to search: start the service with --index FOLDER")
    if body.index is not None and body.index not in indexes:
        raise Refused(404, f"unknown index {body.index[:80]!r}: the indexes are {', '.join(indexes)}")
    chosen = indexes[body.index or next(iter(indexes))]
    served = chosen.served
    queries = (body.query,) if isinstance(body.query, str) else body.query
    require(1 <= body.k <= service.limits.texts, "k must be between 1 and {most}", most=service.limits.texts)
    cross = None if body.rerank is None else service.models.able("rerank", body.rerank)
    ids = await service.tokens(served, queries, truncate=None)
    many = max(body.first, body.k)

    def run(values: list[Any]) -> Sequence[Any]:
        model = None if cross is None else cross.model
        found: Sequence[Any] = chosen.index.search(
            values, k=body.k, rerank=model, first=many if model else None, tell=lambda record: None
        )
        return found

    found = await service.run(served, "search", run, queries, list(map(len, ids)), (chosen, body.k, cross, many))
    answers = [
        {"query": query, "found": [asdict(one) for one in some]} for query, some in zip(queries, found, strict=True)
    ]
    return answers[0] if isinstance(body.query, str) else answers


async def compare(call: Call) -> Any:
    """What several models make of one text: their tokens, their guesses at gaps, their answers, how likely they find it."""
    body: Compare = call.body
    require(1 <= len(body.models) <= 8, "models must name 1 to 8 models, got {count}", count=len(body.models))
    chosen = [call.service.models.get(name) for name in body.models]
    found = await asyncio.gather(*(_compared(call.service, served, body) for served in chosen))
    return {"text": body.text, "models": found}


async def _compared(service: Service, served: Served, body: Compare) -> dict[str, Any]:
    model, text = served.model, with_gaps(served.model, body.text) if "fill-mask" in served.uses else body.text
    (ids,) = await service.tokens(served, [text], truncate=body.truncate)
    found: dict[str, Any] = {"model": served.name, "tokens": [model.tokenizer.readable(int(i)) for i in ids]}
    if "fill-mask" in served.uses and model.tokenizer.role("mask") in ids.tolist():

        def fill(values: list[Any]) -> Sequence[Any]:
            return infer.fill_texts(model, values, top=body.top).value

        (gaps,) = await service.run(served, "fill", fill, [body.text], [len(ids)], body.top)
        found["gaps"] = [[asdict(guess) for guess in gap] for gap in gaps]
    if model.recipe.task is not None:
        (one,) = await service.answer(served, [body.text], truncate=body.truncate)
        found["answer"] = one.as_json(1)
    elif "text-generation" in served.uses:

        def score(values: list[Any]) -> Sequence[Any]:
            return [float(one) for one in model.score_sentences(values, tell=lambda record: None)]

        (found["score"],) = await service.run(served, "score", score, [body.text], [len(ids)])
    return found


async def load(call: Call) -> Any:
    """Open a model, or open it again after its folder changed."""
    _loading(call)
    served = await asyncio.to_thread(call.service.models.load, call.body.model)
    return {"loaded": served.name, "uses": list(served.uses), "models": call.service.models.names()}


async def unload(call: Call) -> Any:
    _loading(call)
    call.service.models.unload(call.body.model)
    return {"unloaded": call.body.model, "models": call.service.models.names()}


def _loading(call: Call) -> None:
    if call.service.models.runs is None:
        raise Refused(403, "models are not loaded by requests: start the service with --runs FOLDER")


ROUTES = (
    Route("/models/{model}/answer", answer, "The answers of the model's task", Examples),
    Route("/search", search, "The texts of an index that are nearest to a query", Search),
    Route("/compare", compare, "What several models make of one text", Compare),
    Route("/models/load", load, "Open a model of the folder --runs, or open it again", Name),
    Route("/models/unload", unload, "Close a model", Name),
)
