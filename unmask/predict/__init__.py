"""Predict: objectives. Pretraining losses and downstream heads are one interface."""

from unmask.predict.adaptive import Adaptive
from unmask.predict.boundary import Boundary
from unmask.predict.copy import Copy
from unmask.predict.label import Label
from unmask.predict.layers import Layers
from unmask.predict.replaced import Replaced
from unmask.predict.tokens import Tokens

__all__ = ["Adaptive", "Boundary", "Copy", "Label", "Layers", "Replaced", "Tokens"]
