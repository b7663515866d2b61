"""Hide = units x budget x replace: which tokens are hidden from the model, and how."""

from unmask.hide.lengths import Geometric, Harmonic, Listed, Poisson
from unmask.hide.links import Links
from unmask.hide.masked import Masked
from unmask.hide.next import Next, Nothing, Previous
from unmask.hide.reorder import PermuteSentences, Rotate
from unmask.hide.replace import Keep, Mask, Shuffle
from unmask.hide.rewrite import Rewrite, WriteSecond
from unmask.hide.rules import apply_rules
from unmask.hide.shorten import Delete, Infill
from unmask.hide.units import Levels, Runs, Second, Spans, Tokens, Words
from unmask.hide.window import Window

__all__ = [
    "Delete", "Geometric", "Harmonic", "Infill", "Keep", "Levels", "Links", "Listed", "Mask", "Masked", "Next", "Nothing", "PermuteSentences",
    "Poisson", "Previous", "Rewrite", "Rotate", "Runs", "Second", "Shuffle", "Spans", "Tokens", "Window", "Words", "WriteSecond",
    "apply_rules",
]  # fmt: skip
