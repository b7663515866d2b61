"""Hide = units x budget x replacement: which part of the text the model must do without."""

from unmask.hide.mask import Hide, Mask, Next, Nothing
from unmask.hide.units import Tokens, Units, Words

__all__ = ["Hide", "Mask", "Next", "Nothing", "Tokens", "Units", "Words"]
