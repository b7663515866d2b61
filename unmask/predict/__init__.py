"""Predict: objectives. Pretraining losses and downstream heads are one interface."""

from unmask.predict.label import Label
from unmask.predict.tokens import Tokens

__all__ = ["Label", "Tokens"]
