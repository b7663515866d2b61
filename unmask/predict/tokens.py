"""Predict the hidden tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need
from unmask.batch import Batch, Hidden, Loss, Targets
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts, reads_targets
from unmask.predict.token_losses import token_losses


@dataclass(frozen=True)
class Tokens(Predicts):
    """The token at each target.

    Paper: BERT (transform, bias), GPT (neither). Needs: targets. Produces: a cross-entropy per target.
    Used by: every recipe that predicts tokens. Differs from Label: one answer per hidden token, not per example.
    """

    tied: bool = True  # the output weights are the token embeddings
    transform: bool = True  # a layer and a norm before the output (BERT)
    bias: bool = True  # one number per token of the vocabulary
    transform_bias: bool = True  # in the layer and the norm of the transform; ModernBERT has none
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # of the transform
    epsilon: float = 1e-12  # of the transform's norm
    smoothing: float = 0.0  # in training, this share of the answer is spread over all tokens (label smoothing)
    target: str = "tokens"  # the name of the targets, as `hide` gives them: "ahead_2" is the token after the next
    layer: int | None = None  # the layer that is read, counted from 1; 0: the embeddings; none: the last layer

    def __post_init__(self) -> None:
        require(
            self.layer is None or self.layer >= 0,
            "predict.*.layer must be none or 0 or more, got {layer}",
            layer=self.layer,
        )
        require(
            0 <= self.smoothing < 1,
            "predict.*.smoothing must be in [0, 1), got {smoothing}: write 0.1 for 10%",
            smoothing=self.smoothing,
        )
        require(
            self.transform or self.transform_bias,
            "predict.*.transform_bias=false has no effect, because transform=false: set transform=true, or transform_bias=true",
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        table = Need("one table", "it scores tokens by their embeddings")
        return (*reads_targets(self.target, query=self.layer is None), table)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"token scores"} if self.layer is None and self.target == "tokens" else ())

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> TokensModule:
        return TokensModule(self, width, embedding, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        read = embedding if self.tied or self.transform else width
        return share * (2 * read * vocabulary + (2 * width * embedding if self.transform else 0))


class TokensModule(nn.Module):
    heavy: ClassVar[str] = "measure"  # the method that is compiled: it is the same for all layers
    token_rows: ClassVar[tuple[str, ...]] = ("weight", "bias")  # parameters with one row per token of the vocabulary

    def __init__(self, spec: Tokens, width: int, embedding: Tensor, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        require(
            spec.transform or not spec.tied or width == embedding.shape[1],
            (
                "predict.*.transform must be true if embeddings and layers differ in width, got embeddings of "
                "width {shape} and layers of width {width}: set predict.*.transform=true, or tied=false"
            ),
            shape=embedding.shape[1],
            width=width,
        )
        if spec.transform:
            self.dense = initial.layer(nn.Linear(width, embedding.shape[1], bias=spec.transform_bias))
            self.norm = nn.LayerNorm(embedding.shape[1], eps=spec.epsilon, bias=spec.transform_bias)
        own = torch.empty(len(embedding), embedding.shape[1] if spec.transform else width)
        self.weight = embedding if spec.tied else nn.Parameter(initial.draw(own))
        self.bias = nn.Parameter(torch.zeros(len(embedding))) if spec.bias else None

    def count(self, batch: Batch) -> Tensor:
        return self.targets(batch).weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        return self.measure(self.vectors_at(hidden, batch), self.targets(batch))

    def at_targets(self, hidden: Hidden, batch: Batch) -> Tensor:
        """N V, the scores of every token of the vocabulary at every target."""
        return self.scores(self.vectors_at(hidden, batch))

    def vectors_at(self, hidden: Hidden, batch: Batch) -> Tensor:
        """N D, the vector that predicts each target; if there is a query stream, the vector of that stream."""
        if hidden.query is not None:
            return hidden.query
        return self.vectors(hidden).flatten(0, 1)[self.targets(batch).at]

    def loss(self, scores: Tensor, batch: Batch) -> Loss:
        return cross_entropy(scores, self.targets(batch), self.smoothing)

    def measure(self, vectors: Tensor, targets: Targets) -> Loss:
        """The loss of the vectors, N D, that predict the targets."""
        return cross_entropy(self.scores(vectors), targets, self.smoothing)

    @property
    def smoothing(self) -> float:
        """The label smoothing: only in training, so that a held-out loss is the negative log probability."""
        return self.spec.smoothing if self.training else 0.0

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the scores of every token of the vocabulary at every position."""
        return self.scores(self.vectors(hidden))

    def vectors(self, hidden: Hidden) -> Tensor:
        """B T D, the vectors of the layer that is read."""
        return hidden.for_prediction if self.spec.layer is None else hidden.layers[self.spec.layer]

    def targets(self, batch: Batch) -> Targets:
        """The targets that are predicted: those of the decoder rows, if there are any."""
        return (batch.decoder or batch).targets[self.spec.target]

    def scores(self, x: Tensor) -> Tensor:
        if self.spec.transform:
            x = self.dense(x)
            kind = self.spec.activation
            x = self.norm(
                F.relu(x) if kind == "relu" else F.gelu(x, approximate="tanh" if kind == "gelu_tanh" else "none")
            )
        return F.linear(x, self.weight, self.bias)


def cross_entropy(scores: Tensor, targets: Targets, smoothing: float = 0.0) -> Loss:
    """The loss of the scores, N V, at the targets."""
    losses = token_losses(scores, targets.ids, smoothing)
    return Loss((losses * targets.weight).sum(), targets.weight.sum())
