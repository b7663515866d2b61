"""Hugging Face's tasks at /models/NAME/TASK: the answers that `huggingface_hub.InferenceClient(model=URL)` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from unmask import infer
from unmask.errors import UserError, require
from unmask.infer.fill import with_gaps
from unmask.serving.call import Call, Route
from unmask.serving.models import Served
from unmask.serving.service import Input, as_texts
from unmask.tasks._entities import OUTSIDE


def check_top(top: int | None) -> None:
    require(top is None or top >= 1, "top_k must be 1 or more, got {top}", top=top)


@dataclass(frozen=True)
class FillParameters:
    """How gaps are filled."""

    top_k: int = 5
    targets: tuple[str, ...] | None = None  # only these words are compared; each must be one token
    truncate: bool = False  # cut a text that is too long; otherwise it is refused


@dataclass(frozen=True)
class FillMask:
    """The body of fill-mask."""

    inputs: str | tuple[str, ...]
    parameters: FillParameters = field(default_factory=FillParameters)


@dataclass(frozen=True)
class ClassParameters:
    """How many labels are given."""

    top_k: int | None = None
    truncate: bool = False  # cut a text that is too long; otherwise it is refused

    def __post_init__(self) -> None:
        check_top(self.top_k)


@dataclass(frozen=True)
class TextClassification:
    """The body of text-classification."""

    inputs: str | tuple[str, ...]
    parameters: ClassParameters = field(default_factory=ClassParameters)


@dataclass(frozen=True)
class TagParameters:
    """How tags are given."""

    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] = "simple"
    ignore_labels: tuple[str, ...] = ()  # tags that are left out


@dataclass(frozen=True)
class TokenClassification:
    """The body of token-classification."""

    inputs: str | tuple[str, ...]
    parameters: TagParameters = field(default_factory=TagParameters)


@dataclass(frozen=True)
class Question:
    """A question about a text."""

    question: str
    context: str


@dataclass(frozen=True)
class AnswerParameters:
    """How many answers are given."""

    top_k: int | None = None

    def __post_init__(self) -> None:
        check_top(self.top_k)


@dataclass(frozen=True)
class QuestionAnswering:
    """The body of question-answering."""

    inputs: Question
    parameters: AnswerParameters = field(default_factory=AnswerParameters)


@dataclass(frozen=True)
class FeatureExtraction:
    """The body of feature-extraction."""

    inputs: Input
    normalize: bool = False
    dimensions: int | None = None
    truncate: bool = False
    truncation_direction: Literal["right", "Right", "left", "Left"] = "right"


async def fill_mask(call: Call) -> Any:
    """For each gap its most likely tokens; with several gaps or texts, a list for each."""
    body: FillMask = call.body
    served = call.service.models.able("fill-mask", call.path["model"])
    texts, top = as_texts(body.inputs), body.parameters.top_k
    require(top >= 1, "top_k must be 1 or more, got {top}", top=top)
    only = None if body.parameters.targets is None else _ids(served, body.parameters.targets)

    def run(values: list[Any]) -> Sequence[Any]:
        most = top if only is None else served.model.tokenizer.vocabulary.size
        found = infer.fill_texts(served.model, values, top=most).value
        return found if only is None else [[_among(gap, only, top) for gap in gaps] for gaps in found]

    ids = await call.service.tokens(
        served, [with_gaps(served.model, text) for text in texts], truncate=body.parameters.truncate
    )
    found = await call.service.run(served, "fill", run, texts, list(map(len, ids)), (top, only))
    answers = [_filled(served, text, gaps) for text, gaps in zip(texts, found, strict=True)]
    return answers[0] if isinstance(body.inputs, str) else answers


def _ids(served: Served, words: Sequence[str]) -> frozenset[int]:
    """The tokens of words that are asked for."""
    found = [(word, served.model.tokenizer.encode(word)) for word in words]
    wrong = next(((word, len(ids)) for word, ids in found if len(ids) != 1), None)
    require(
        wrong is None and bool(found),
        "targets must be words that are one token each, got {wrong}: leave such words out",
        wrong="none" if wrong is None else f"{wrong[0][:40]!r} with {wrong[1]} tokens",
    )
    return frozenset(ids[0] for _, ids in found)


def _among(guesses: list[infer.Guess], only: frozenset[int], top: int) -> list[infer.Guess]:
    return [guess for guess in guesses if guess.id in only][:top]


def _filled(served: Served, text: str, gaps: list[list[infer.Guess]]) -> Any:
    """The answer to one text: a list of guesses, or such a list for each of several gaps."""
    tokenizer = served.model.tokenizer
    ids = tokenizer.encode(with_gaps(served.model, text))
    places = [place for place, i in enumerate(ids) if i == tokenizer.role("mask")]
    several = [
        [
            {
                "score": guess.probability, "token": guess.id, "token_str": guess.token,
                "sequence": tokenizer.decode([*ids[:place], guess.id, *ids[place + 1 :]]),
            }
            for guess in guesses
        ]
        for place, guesses in zip(places, gaps, strict=False)
    ]  # fmt: skip
    return several[0] if len(several) == 1 else several


async def text_classification(call: Call) -> Any:
    body: TextClassification = call.body
    served = call.service.models.able("text-classification", call.path["model"])
    texts = as_texts(body.inputs)
    answers = await call.service.answer(served, texts, truncate=body.parameters.truncate)
    top = body.parameters.top_k
    return [labels_of(one)[:top] for one in answers]


async def feature_extraction(call: Call) -> Any:
    """One vector for each text."""
    body: FeatureExtraction = call.body
    served = call.service.models.able("feature-extraction", call.path["model"])
    ids = await call.service.tokens(
        served, as_texts(body.inputs), truncate=body.truncate, cut=body.truncation_direction
    )
    vectors = await call.service.embed(served, ids, dims=body.dimensions)
    if body.normalize:
        vectors = unit(vectors)
    return vectors.tolist()


def unit(vectors: Any) -> Any:
    """The same vectors with length 1."""
    lengths = (vectors**2).sum(-1, keepdims=True) ** 0.5
    return vectors / lengths.clip(1e-12)


def labels_of(found: Any) -> list[dict[str, Any]]:
    """The labels of an answer with their probabilities, the most likely first."""
    if not hasattr(found, "probabilities"):
        raise UserError("the model gives no probabilities of labels")
    pairs = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    return [{"label": label, "score": share} for label, share in pairs]


async def token_classification(call: Call) -> Any:
    """The spans that the tags mark, or every tagged word, with their characters."""
    body: TokenClassification = call.body
    served = call.service.models.able("token-classification", call.path["model"])
    texts = as_texts(body.inputs)
    answers = await call.service.answer(served, texts)
    grouped, without = body.parameters.aggregation_strategy != "none", body.parameters.ignore_labels
    kind = "entity_group" if grouped else "entity"
    found = [
        [tag for tag in marked(text, one, grouped=grouped) if tag[kind] not in without]
        for text, one in zip(texts, answers, strict=True)
    ]
    return found[0] if isinstance(body.inputs, str) else found


def marked(text: str, found: Any, *, grouped: bool) -> list[dict[str, Any]]:
    """The tags of a text: of spans, one entry for each span; otherwise one for each word with a tag other than O."""
    places, at = [], 0
    for word in found.words:
        at = text.index(word, at)
        places.append((at, at + len(word)))
        at += len(word)
    if grouped and found.spans:
        several = [(one["type"], one["start"], one["end"]) for one in found.entities]
    else:
        several = [(tag, number, number + 1) for number, tag in enumerate(found.tags) if tag != OUTSIDE]
    kind = "entity_group" if grouped else "entity"
    return [
        {
            kind: tag, "score": sum(found.probabilities[first:end]) / (end - first),
            "word": text[places[first][0] : places[end - 1][1]], "start": places[first][0], "end": places[end - 1][1],
        }
        for tag, first, end in several
    ]  # fmt: skip


async def question_answering(call: Call) -> Any:
    body: QuestionAnswering = call.body
    served = call.service.models.able("question-answering", call.path["model"])
    (found,) = await call.service.answer(served, [(body.inputs.question, body.inputs.context)])
    several = [{"answer": text, "start": begin, "end": end, "score": share} for text, (begin, end), share in found.best]
    top = body.parameters.top_k
    return several[0] if top is None or top == 1 else several[:top]


def _route(task: str, function: Any, body: type, summary: str) -> Route:
    return Route(f"/models/{{model}}/{task}", function, summary, body, "Hugging Face")


ROUTES = (
    _route("fill-mask", fill_mask, FillMask, "The most likely tokens at each [MASK]"),
    _route("text-classification", text_classification, TextClassification, "The labels of a text"),
    _route("token-classification", token_classification, TokenClassification, "The tags of the words of a text"),
    _route("question-answering", question_answering, QuestionAnswering, "The answer to a question, found in a text"),
    _route("feature-extraction", feature_extraction, FeatureExtraction, "One vector for each text"),
)
