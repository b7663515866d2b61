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
from unmask.serving.service import Input, Service, as_texts


@dataclass(frozen=True)
class FillParameters:
    """How gaps are filled."""

    top_k: int = 5


@dataclass(frozen=True)
class FillMask:
    """The body of fill-mask."""

    inputs: str | tuple[str, ...]
    parameters: FillParameters = field(default_factory=FillParameters)


@dataclass(frozen=True)
class ClassParameters:
    """How many labels are given."""

    top_k: int | None = None
    function_to_apply: Literal["softmax", "sigmoid"] | None = None


@dataclass(frozen=True)
class TextClassification:
    """The body of text-classification."""

    inputs: str | tuple[str, ...]
    parameters: ClassParameters = field(default_factory=ClassParameters)


@dataclass(frozen=True)
class FeatureExtraction:
    """The body of feature-extraction."""

    inputs: Input
    normalize: bool = False
    truncate: bool = False
    truncation_direction: Literal["right", "Right"] = "right"


async def fill_mask(call: Call) -> Any:
    """For each gap its most likely tokens; with several gaps or texts, a list for each."""
    body: FillMask = call.body
    served = call.service.models.able("fill-mask", call.path["model"])
    texts = as_texts(body.inputs)
    top = body.parameters.top_k

    def run(values: list[Any]) -> Sequence[Any]:
        return infer.fill_texts(served.model, values, top=top).value

    ids = await call.service.tokens(served, [with_gaps(served.model, text) for text in texts], truncate=True)
    found = await call.service.run(served, "fill", run, texts, list(map(len, ids)), top)
    answers = [_filled(served, text, gaps) for text, gaps in zip(texts, found, strict=True)]
    return answers[0] if isinstance(body.inputs, str) else answers


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
    answers = await answer(call.service, served, texts)
    top = body.parameters.top_k
    return [labels_of(one)[:top] for one in answers]


async def feature_extraction(call: Call) -> Any:
    """One vector for each text."""
    body: FeatureExtraction = call.body
    served = call.service.models.able("feature-extraction", call.path["model"])
    ids = await call.service.tokens(served, as_texts(body.inputs), truncate=body.truncate)
    vectors = await call.service.embed(served, ids)
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


async def answer(service: Service, served: Served, values: Sequence[Any]) -> list[Any]:
    """The answers to examples of the model's task: those of `Model.predict`."""
    service.check_texts(len(values))
    task = infer.task_of_model(served.model)
    examples = task.given(values)
    require(len(examples) > 0, "there are no examples: give at least one")

    def run(some: list[Any]) -> Sequence[Any]:
        return infer.answer(served.model, some).answers

    sizes = [sum(len(text) for text in example.shown) for example in examples]
    # about the number of tokens: the exact number is known only when the task has laid out its rows
    lengths = [min(served.model.length, 2 + size // 3) for size in sizes]
    return await service.run(served, "answer", run, examples, lengths)


def _route(task: str, function: Any, body: type, summary: str) -> Route:
    return Route(f"/models/{{model}}/{task}", function, summary, body, "Hugging Face")


ROUTES = (
    _route("fill-mask", fill_mask, FillMask, "The most likely tokens at each [MASK]"),
    _route("text-classification", text_classification, TextClassification, "The labels of a text"),
    _route("feature-extraction", feature_extraction, FeatureExtraction, "One vector for each text"),
)
