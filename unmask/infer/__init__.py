"""What a trained model does: fill, generate, embed, classify, choose, write."""

from unmask.infer.choose import choose
from unmask.infer.classify import Prediction, classify
from unmask.infer.embed import embed
from unmask.infer.fill import Guess, fill
from unmask.infer.generate import Generated, generate, stream
from unmask.infer.generate_texts import shown, texts
from unmask.infer.model import Model, open_run, save_run
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling, decoding
from unmask.infer.write import write

__all__ = [
    "Beams", "Generated", "Greedy", "Guess", "Model", "Prediction", "Sampling", "Decoding", "choose", "classify", "embed",
    "fill", "generate", "open_run", "save_run", "shown", "stream", "texts", "decoding", "write",
]  # fmt: skip
