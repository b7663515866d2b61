"""Predict: objectives. Pretraining losses and downstream heads share one interface."""

from unmask.predict.adaptive import Adaptive
from unmask.predict.all_tokens import AllTokens
from unmask.predict.choice import Choice
from unmask.predict.every_layer import EveryLayer
from unmask.predict.label import Label
from unmask.predict.relation import Relation
from unmask.predict.replaced import Replaced
from unmask.predict.span import Span
from unmask.predict.span_boundary import SpanBoundary
from unmask.predict.tags import Tags
from unmask.predict.tokens import Tokens

__all__ = [
    "Adaptive", "SpanBoundary", "Choice", "AllTokens", "Label", "EveryLayer", "Relation", "Replaced", "Span", "Tags", "Tokens",
]  # fmt: skip
