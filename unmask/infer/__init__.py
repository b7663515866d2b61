"""Use a trained model: fill gaps, generate, embed, write a second text, answer examples of its task."""

from unmask.infer.answer import TaskReader, answer, task_of_model
from unmask.infer.attention import AttentionWeights, attention, attention_to_source
from unmask.infer.embed import embed
from unmask.infer.fill import Guess, fill, fill_texts
from unmask.infer.generate import Generated, generate, stream
from unmask.infer.model import Model, open_on, open_run, save_run
from unmask.infer.one_task import one_task
from unmask.infer.passes import Noted
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling, decoding

__all__ = [
    "AttentionWeights", "Beams", "Decoding", "Generated", "Greedy", "Guess", "Model", "Noted", "Sampling", "TaskReader",
    "answer", "attention", "attention_to_source", "decoding", "embed", "fill", "fill_texts", "generate", "one_task", "open_on", "open_run", "save_run", "stream", "task_of_model",
]  # fmt: skip
