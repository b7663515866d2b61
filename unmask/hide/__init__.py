"""Hide = units x budget x replace: which tokens are hidden from the model, and how."""

from unmask.hide.lengths import Geometric, Harmonic, Listed
from unmask.hide.masked import Masked
from unmask.hide.next import Next, Nothing, Previous
from unmask.hide.replace import Keep, Mask, Shuffle
from unmask.hide.rules import apply_rules
from unmask.hide.units import Levels, Runs, Second, Spans, Tokens, Words

__all__ = [
    "Geometric", "Harmonic", "Keep", "Levels", "Listed", "Mask", "Masked", "Next", "Nothing", "Previous", "Runs", "Second", "Shuffle", "Spans",
    "Tokens", "Words", "apply_rules",
]  # fmt: skip
