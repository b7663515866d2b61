"""Predict the class of a pair of texts in several steps: a stochastic answer network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need, Part
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.class_weights import add_class_weights, check_class_weights
from unmask.predict.objective import Predicts, read_again

SMALLEST = 1e-30  # a probability is never 0 in a logarithm


@dataclass(frozen=True)
class AnswerSteps(Part):
    """How many times a stochastic answer network reads a pair, and how it forgets some of its answers in training."""

    count: int = 5  # the steps; the answer is the mean of all
    # prediction dropout: the probability that training leaves out the answer of a step; one is always kept
    dropout: float = 0.1

    def __post_init__(self) -> None:
        require(self.count >= 1, "a stochastic answer network has 1 step or more, got {count}", count=self.count)
        require(
            0 <= self.dropout < 1, "dropout must be in [0, 1), got {dropout}: write 0.1 for 10%", dropout=self.dropout
        )


@dataclass(frozen=True)
class San(Predicts):
    """The class of a pair: a recurrent state reads the first text again in each step, and every step answers.

    Paper: SAN (Liu et al. 2018, arXiv:1804.07888), as the head for pairs of MT-DNN (Liu et al. 2019, arXiv:1901.11504). Needs:
    labels. Produces: a cross-entropy per example, of the mean of the steps' probabilities. Used by: Classify with `san`, and
    pairs in a folder of tasks. Differs from Label: it reads all tokens of both texts, not the vector of one token.
    """

    classes: int = 2  # the number of classes
    steps: AnswerSteps = AnswerSteps()
    dropout: float = 0.0  # of what it reads
    weights: tuple[float, ...] = ()  # of the loss of each class; empty: all 1

    def __post_init__(self) -> None:
        require(self.classes >= 2, "a label needs 2 classes or more, got {classes}", classes=self.classes)
        require(0 <= self.dropout < 1, "dropout must be in [0, 1), got {dropout}", dropout=self.dropout)
        check_class_weights("a stochastic answer network", self.weights, self.classes)

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def reads_decoder(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("labels", "it predicts the class of each example"),
            Need("unpacked rows", "it compares the two texts of each row"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"class scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> SanModule:
        return SanModule(self, width, initial)


class SanModule(nn.Module):
    weights: Tensor | None

    def __init__(self, spec: San, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        add_class_weights(self, spec.weights)
        self.sum = initial.layer(nn.Linear(width, 1))  # sums up the second text
        self.look = initial.layer(nn.Linear(width, width))  # the bilinear attention to the first text
        self.update = nn.GRUCell(width, width)
        self.out = initial.layer(nn.Linear(4 * width, spec.classes))
        self.dropout = nn.Dropout(spec.dropout)

    def count(self, batch: Batch) -> Tensor:
        return batch.counted.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        steps = self._steps(hidden, batch).float().softmax(-1)  # E steps classes
        means = _log_mean(steps, self._kept(steps))
        losses = F.nll_loss(means, batch.label, weight=self.weights, reduction="none")
        return Loss((losses * batch.counted).sum(), batch.counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E classes, the logarithm of the mean probability over the steps."""
        steps = self._steps(hidden, batch).float().softmax(-1)
        return _log_mean(steps, torch.ones_like(steps[..., 0]))

    def _steps(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E steps classes, the scores of each step. There is one example in a row."""
        vectors, read = read_again(hidden, batch)
        first, second = (read.real & (read.segment == number) for number in (0, 1))
        x = self.dropout(vectors)
        state, found = _attended(self.sum(x)[..., 0], x, second), []
        for _ in range(self.spec.steps.count):
            seen = _attended((x @ self.look(state)[..., None])[..., 0], x, first)
            both = torch.cat((state, seen, (state - seen).abs(), state * seen), -1)
            found.append(self.out(self.dropout(both)))
            state = self.update(seen, self.dropout(state)).to(seen.dtype)
        return torch.stack(found, 1)

    def _kept(self, steps: Tensor) -> Tensor:
        """E steps, 1 for each answer that counts. In training some are dropped, but not one that is drawn first."""
        kept = torch.ones_like(steps[..., 0])
        if not self.training or not self.spec.steps.dropout:
            return kept
        always = F.one_hot(torch.randint(kept.shape[1], kept.shape[:1], device=kept.device), kept.shape[1])
        return torch.maximum(always.to(kept.dtype), (torch.rand_like(kept) >= self.spec.steps.dropout).to(kept.dtype))


def _attended(scores: Tensor, x: Tensor, inside: Tensor) -> Tensor:
    """E D, the mean of the vectors of some tokens, weighed by the softmax of their scores. `inside`: E T, which tokens."""
    shares = scores.float().masked_fill(~inside, torch.finfo(torch.float32).min).softmax(-1).to(x.dtype)
    return (shares[:, None] @ x)[:, 0]


def _log_mean(steps: Tensor, kept: Tensor) -> Tensor:
    """E classes, the logarithm of the mean of the kept probabilities."""
    return ((steps * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)).clamp(min=SMALLEST).log()
