"""Likelihood: the probability of each token given the tokens before it, by a model that reads from left to right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import together
from unmask.train.loop import Machine

SCORES = 1 << 25  # most scores in memory at once: positions x vocabulary

Read = Callable[[Batch], Hidden]


@dataclass(frozen=True)
class Likelihood:
    """The probabilities of the scored tokens of some rows, row after row."""

    logs: np.ndarray  # the natural logarithm of each token's probability, float64
    likeliest: np.ndarray  # whether the token is the most likely one at its position

    def split(self, scored: Sequence[int]) -> list[Likelihood]:
        """One Likelihood per row. `scored`: the number of scored tokens of each row."""
        edges = np.cumsum(scored)[:-1]
        pairs = zip(np.split(self.logs, edges), np.split(self.likeliest, edges), strict=True)
        return [Likelihood(*pair) for pair in pairs]


def predicts_next(model: Model) -> bool:
    """Whether a model reads from left to right and predicts tokens, so that it is a language model."""
    scored = any("token scores" in part.gives for part in model.recipe.predict.values())
    return "left" in model.recipe.writes and scored


def require_predicts_next(model: Model) -> None:
    parts = ", ".join(model.recipe.predict) or "nothing"
    require(
        predicts_next(model),
        (
            "{folder} does not predict the next token: its 'see' part is {see_kind}, and it predicts {parts}; use "
            "a model that reads from left to right, such as gpt2"
        ),
        folder=model.folder,
        see_kind=type(model.recipe.see).__name__,
        parts=parts,
    )


def machine_of(model: Model) -> Machine:
    """The device and the precision of a model: bfloat16 on a GPU, as in training."""
    return Machine(device=model.device, half=model.device != "cpu")


def score(model: Model, rows: Sequence[np.ndarray], scored: Sequence[int], *, read: Read | None = None) -> Likelihood:
    """Score the last `scored` tokens of each row, given the tokens before them in the row. All rows are read in one pass.

    The last token of a row is predicted and never read. `read`: the function that runs the network on a batch, if the
    network also remembers earlier batches."""
    require_predicts_next(model)
    head: Any = model.head("token scores", "score tokens")
    batch, where, targets = _laid_out(rows, scored, model.tokenizer.vocabulary.pad)
    batch, where, targets = batch.to(model.device), where.to(model.device), targets.to(model.device)
    model.system.eval()
    logs, likeliest = [], []
    with torch.no_grad(), machine_of(model).autocast():
        look = read or partial(model.system.look, track=model.recipe.writing)
        vectors = look(batch).for_prediction.flatten(0, 1)[where]  # N D
        places = max(1, SCORES // model.tokenizer.vocabulary.size)
        for part, wanted in zip(vectors.split(places), targets.split(places), strict=True):
            scores = head.decode(Hidden((part[None],)), batch)[0].float()
            logs.append(scores.log_softmax(-1).gather(1, wanted[:, None])[:, 0])
            likeliest.append(scores.argmax(-1) == wanted)
    return Likelihood(torch.cat(logs).double().cpu().numpy(), torch.cat(likeliest).cpu().numpy())


def trace_scores(
    model: Model, rows: Sequence[np.ndarray], scored: Sequence[int]
) -> Iterator[tuple[list[Likelihood], int, int]]:
    """Score rows in passes. Yields, after each pass, the likelihood of each row, the number of tokens read, and their total."""
    found: list[Likelihood] = [Likelihood(np.empty(0), np.empty(0, bool))] * len(rows)
    lengths, done = [len(row) for row in rows], 0
    for chosen in together(lengths):
        counts = [scored[i] for i in chosen]
        for i, part in zip(chosen, score(model, [rows[i] for i in chosen], counts).split(counts), strict=True):
            found[i] = part
        done += sum(lengths[i] for i in chosen)
        yield found, done, sum(lengths)


def _laid_out(rows: Sequence[np.ndarray], scored: Sequence[int], pad: int) -> tuple[Batch, Tensor, Tensor]:
    """A batch of the rows without their last tokens, the flat indices where scored tokens are predicted, and their ids."""
    width = max(map(len, rows)) - 1
    ids, example = np.full((len(rows), width), pad), np.full((len(rows), width), -1)
    position = np.zeros_like(ids)  # padding needs a valid position too
    where, targets = [], []
    for number, (row, count) in enumerate(zip(rows, scored, strict=True)):
        read = len(row) - 1
        assert 1 <= count <= read, "a token is scored after at least one other"
        ids[number, :read], example[number, :read], position[number, :read] = row[:-1], 0, np.arange(read)
        where.append(number * width + np.arange(read - count, read))
        targets.append(row[len(row) - count :])
    real, numbers = torch.from_numpy(example), torch.arange(len(rows))
    nothing, word = torch.zeros_like(real), torch.from_numpy(np.where(example < 0, -1, position))
    batch = Batch(
        ids=torch.from_numpy(ids), columns={"word": word, "sentence": real}, example=real, segment=nothing,
        position=torch.from_numpy(position), row=numbers, visit=torch.zeros_like(numbers), summary=numbers * width,
        label=torch.zeros_like(numbers), counted=torch.ones(len(rows)),
    )  # fmt: skip
    return batch, torch.from_numpy(np.concatenate(where)), torch.from_numpy(np.concatenate(targets)).long()
