"""The routes of Text Embeddings Inference, for the first model that can do what is asked, and at /models/NAME/... for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import torch

from unmask.errors import require
from unmask.infer.text_batches import around, text_batches
from unmask.search import relevance
from unmask.serving.call import Call, Route
from unmask.serving.hf_tasks import labels_of, unit
from unmask.serving.models import Served
from unmask.serving.refused import Refused
from unmask.serving.service import Input, apart, as_texts
from unmask.version import __version__

Direction = Literal["right", "Right", "left", "Left"]  # where a text that is too long is cut
Right = Literal["right", "Right"]
MOST_NUMBERS: Final = 4_000_000  # of an answer of /embed_all: it would have 8 GB for the largest request otherwise


@dataclass(frozen=True)
class Embed:
    """The body of /embed."""

    inputs: Input
    truncate: bool = False
    truncation_direction: Direction = "right"
    normalize: bool = True
    dimensions: int | None = None


@dataclass(frozen=True)
class EmbedAll:
    """The body of /embed_all."""

    inputs: Input
    truncate: bool = False
    truncation_direction: Direction = "right"


@dataclass(frozen=True)
class Predict:
    """The body of /predict: a text, a pair of texts, or a list of lists with one or two texts each."""

    inputs: str | tuple[str, ...] | tuple[tuple[str, ...], ...]
    truncate: bool = False
    truncation_direction: Right = "right"
    raw_scores: bool = False

    def __post_init__(self) -> None:
        require(not self.raw_scores, "raw_scores is not supported: scores are probabilities; leave it out")


@dataclass(frozen=True)
class Rerank:
    """The body of /rerank."""

    query: str
    texts: tuple[str, ...]
    truncate: bool = False
    truncation_direction: Right = "right"
    raw_scores: bool = False
    return_text: bool = False

    def __post_init__(self) -> None:
        require(not self.raw_scores, "raw_scores is not supported: leave it out")


@dataclass(frozen=True)
class Compared:
    """A text, and the texts that it is compared with."""

    source_sentence: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Cut:
    """What is done with texts that are too long."""

    truncate: bool = False
    truncation_direction: Direction = "right"


@dataclass(frozen=True)
class Similarity:
    """The body of /similarity."""

    inputs: Compared
    parameters: Cut | None = None


@dataclass(frozen=True)
class Tokenize:
    """The body of /tokenize."""

    inputs: str | tuple[str, ...]
    add_special_tokens: bool = True


@dataclass(frozen=True)
class Decode:
    """The body of /decode."""

    ids: tuple[int, ...] | tuple[tuple[int, ...], ...]
    skip_special_tokens: bool = True


async def embed(call: Call) -> Any:
    body: Embed = call.body
    served = call.service.models.able("feature-extraction", call.model)
    ids = await call.service.tokens(
        served, as_texts(body.inputs), truncate=body.truncate, cut=body.truncation_direction
    )
    vectors = await call.service.embed(served, ids, dims=body.dimensions)
    return (unit(vectors) if body.normalize else vectors).tolist()


async def embed_all(call: Call) -> Any:
    """The vector of each token of the last layer, special tokens too."""
    body: EmbedAll = call.body
    served = call.service.models.able("feature-extraction", call.model)
    ids = await call.service.tokens(
        served, as_texts(body.inputs), truncate=body.truncate, cut=body.truncation_direction
    )
    frame, width = served.model.length - served.room, served.model.recipe.system.backbone.width
    numbers = width * sum(len(one) + frame for one in ids)
    if numbers > MOST_NUMBERS:
        raise Refused(
            413,
            f"the answer may have {MOST_NUMBERS:,} numbers, and would have {numbers:,}: send fewer texts",
            limit="numbers",
        )

    def run(values: list[Any]) -> Sequence[Any]:
        return token_vectors(served, values)

    return await call.service.run(served, "embed_all", run, ids, [len(one) + frame for one in ids])


def token_vectors(served: Served, ids: Sequence[np.ndarray]) -> list[list[list[float]]]:
    """For each text the vectors of its tokens."""
    found: dict[int, Any] = {}
    with torch.inference_mode():
        for chosen, batch in text_batches(served.model, ids)[0]:
            vectors, lengths = served.model.system.look(batch).last.float().cpu(), batch.real.sum(1).tolist()
            for row, number in enumerate(chosen.tolist()):
                found[number] = vectors[row, : lengths[row]].tolist()
    return [found[number] for number in range(len(ids))]


async def predict(call: Call) -> Any:
    """The labels of a text with their probabilities, the most likely first; for a list of lists, a list of them."""
    body: Predict = call.body
    served = call.service.models.able("text-classification", call.model)
    several = not isinstance(body.inputs, str) and bool(body.inputs) and isinstance(body.inputs[0], tuple)
    one = (body.inputs,) if isinstance(body.inputs, str) else body.inputs
    values: Any = body.inputs if several else (one,)
    wrong = next((value for value in values if not 1 <= len(value) <= 2), None)
    require(
        wrong is None, "inputs must be a text, two texts, or lists of one or two texts, got {wrong!r:.60}", wrong=wrong
    )
    answers = await call.service.answer(served, values, truncate=body.truncate)
    found = [labels_of(answer) for answer in answers]
    return found if several else found[0]


async def rerank(call: Call) -> Any:
    """The texts, ordered by how well they answer the query."""
    body: Rerank = call.body
    served = call.service.models.able("rerank", call.model)
    pairs = [(body.query, text) for text in body.texts]
    answers = await call.service.answer(served, pairs, truncate=body.truncate)
    scores = relevance(served.model, answers)
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    return [
        {"index": number, "score": scores[number]} | ({"text": body.texts[number]} if body.return_text else {})
        for number in order
    ]


async def similarity(call: Call) -> Any:
    """The cosine of a text with each other text."""
    body: Similarity = call.body
    served = call.service.models.able("feature-extraction", call.model)
    texts, how = (body.inputs.source_sentence, *body.inputs.sentences), body.parameters or Cut()
    require(len(texts) > 1, "there are no sentences to compare with: give at least one")
    ids = await call.service.tokens(served, texts, truncate=how.truncate, cut=how.truncation_direction)
    vectors = unit(await call.service.embed(served, ids))
    return (vectors[1:] @ vectors[0]).tolist()


async def tokenize(call: Call) -> Any:
    """The tokens of each text with their characters."""
    body: Tokenize = call.body
    served = _any(call)
    texts = as_texts(body.inputs)
    call.service.check_texts(len(texts))
    return await apart(lambda: [_tokens(served, text, body.add_special_tokens) for text in texts], sum(map(len, texts)))


def _tokens(served: Served, text: str, special: bool) -> list[dict[str, Any]]:
    """The tokens of a text as the model reads it alone: the special tokens of the layout around those of the text."""
    tokenizer = served.model.tokenizer
    encoding = tokenizer.backend.encode(tokenizer.with_mask(text), add_special_tokens=False)
    own = [
        {"id": i, "text": tokenizer.token(i), "special": i in tokenizer.vocabulary.special, "start": begin, "stop": end}
        for i, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True)
    ]
    if not special:
        return own
    before, after = (
        [{"id": i, "text": tokenizer.token(i), "special": True, "start": None, "stop": None} for i in side]
        for side in around(served.model)
    )
    return [*before, *own, *after]


async def decode(call: Call) -> Any:
    body: Decode = call.body
    tokenizer = _any(call).model.tokenizer
    several = as_texts(body.ids)
    call.service.check_texts(len(several))
    size, special = tokenizer.vocabulary.size, set(tokenizer.vocabulary.special)
    wrong = next((i for ids in several for i in ids if not 0 <= i < size), None)
    require(wrong is None, "ids must be between 0 and {last}, got {wrong}", last=size - 1, wrong=wrong)
    kept = [[i for i in ids if not (body.skip_special_tokens and i in special)] for ids in several]
    return [tokenizer.decode(ids) for ids in kept]


async def info(call: Call) -> Any:
    """What the model is, and the limits of the service."""
    served, limits = _any(call), call.service.limits
    model = served.model
    labels = {str(number): label for number, label in enumerate(model.labels)}
    kind = {"classifier": {"id2label": labels, "label2id": {label: int(n) for n, label in labels.items()}}}
    return {
        "model_id": served.name, "model_sha": None, "model_dtype": str(next(model.system.parameters()).dtype)[6:],
        "model_type": kind if "text-classification" in served.uses else {"embedding": {"pooling": "mean"}},
        "uses": list(served.uses), "max_concurrent_requests": limits.requests, "max_input_length": model.length,
        "max_batch_tokens": call.service.batch_tokens(served), "max_client_batch_size": limits.texts,
        "max_body_size": limits.body, "version": __version__,
    }  # fmt: skip


def _any(call: Call) -> Served:
    """The model that the path names, or the first one."""
    models = call.service.models
    if call.model is not None:
        return models.get(call.model)
    if not models.all():
        raise Refused(404, "no model is loaded: load one with POST /models/load")
    return models.all()[0]


def _both(path: str, answer: Any, summary: str, body: type | None) -> tuple[Route, Route]:
    group = "Text Embeddings Inference"
    return Route(path, answer, summary, body, group), Route(f"/models/{{model}}{path}", answer, summary, body, group)


ROUTES = (
    *_both("/embed", embed, "One vector for each text", Embed),
    *_both("/embed_all", embed_all, "A vector for each token", EmbedAll),
    *_both("/predict", predict, "The labels of a text or of a pair of texts", Predict),
    *_both("/rerank", rerank, "Texts ordered by how well they answer a query", Rerank),
    *_both("/similarity", similarity, "The cosines of a text with others", Similarity),
    *_both("/tokenize", tokenize, "The tokens of each text", Tokenize),
    *_both("/decode", decode, "The texts of token ids", Decode),
    *_both("/info", info, "The model and the limits", None),
)
