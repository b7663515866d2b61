"""Hide = units x budget x replacement: which part of the text the model must do without."""

from unmask.hide.lengths import Geometric, Harmonic, Listed
from unmask.hide.mask import Hide, Mask, Next, Nothing
from unmask.hide.shuffle import Shuffle
from unmask.hide.units import Levels, Second, Spans, Tokens, Units, Words

__all__ = [
    "Geometric", "Harmonic", "Hide", "Levels", "Listed", "Mask", "Next", "Nothing", "Second", "Shuffle", "Spans", "Tokens", "Units",
    "Words",
]  # fmt: skip
