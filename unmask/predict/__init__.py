"""Predict: objectives. Pretraining losses and downstream heads share one interface."""

from unmask.predict.activations import FastVectors, LargeVectors
from unmask.predict.adaptive import Adaptive
from unmask.predict.all_tokens import AllTokens
from unmask.predict.choice import Choice
from unmask.predict.entities import Entities
from unmask.predict.every_layer import EveryLayer
from unmask.predict.label import Label
from unmask.predict.neighbours import Neighbours
from unmask.predict.relation import Relation
from unmask.predict.replaced import Replaced
from unmask.predict.san import AnswerSteps, San
from unmask.predict.span import Span
from unmask.predict.span_boundary import SpanBoundary
from unmask.predict.tags import Tags
from unmask.predict.text_vectors import TextVectors
from unmask.predict.tokens import Tokens
from unmask.predict.vector_losses import CosineLoss, InBatchLoss, PairClassLoss

__all__ = [
    "Adaptive", "AllTokens", "AnswerSteps", "Choice", "CosineLoss", "Entities", "EveryLayer", "FastVectors", "InBatchLoss", "Label", "LargeVectors",
    "Neighbours", "PairClassLoss", "Relation",
    "Replaced", "San", "Span", "SpanBoundary", "Tags", "TextVectors", "Tokens",
]  # fmt: skip
