"""What a trained model does: fill, generate, embed, classify, choose, write."""

from unmask.infer.choose import choose
from unmask.infer.classify import Prediction, classify
from unmask.infer.embed import embed
from unmask.infer.fill import Guess, fill
from unmask.infer.generate import Sampling, generate
from unmask.infer.model import Model, open_run, save_run
from unmask.infer.write import write

__all__ = [
    "Guess", "Model", "Prediction", "Sampling", "choose", "classify", "embed", "fill", "generate", "open_run",
    "save_run", "write",
]  # fmt: skip
