"""The loss of each target: the cross-entropy of its scores, in float32.

On a CPU, the scores of all targets take far more memory than the cache holds, and PyTorch's functions write them in float32
several times. `_InParts` computes losses and gradients a few rows at a time, and keeps the gradients in the precision of the
scores: three times as fast.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

PART = 2**18  # scores that are read at a time: 1 MB


def token_losses(scores: Tensor, ids: Tensor, smoothing: float = 0.0) -> Tensor:
    """N, in float32. `scores`: N V. `ids`: N. `smoothing`: the share of the target that is spread over the vocabulary."""
    if scores.device.type == "cpu" and scores.requires_grad:
        found: Tensor = _InParts.apply(scores, ids, smoothing)
        return found
    return F.cross_entropy(scores.float(), ids, reduction="none", label_smoothing=smoothing)


class _InParts(torch.autograd.Function):
    """The same, with its gradient computed in the forward pass: softmax minus target."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, ids: Tensor, smoothing: float) -> Tensor:
        rows = max(1, PART // scores.shape[1])
        losses, gradient = torch.empty(len(scores), dtype=torch.float32), torch.empty_like(scores)
        parts = (tensor.split(rows) for tensor in (scores, ids[:, None], losses, gradient))
        for some, wanted, loss, change in zip(*parts, strict=True):
            some = some.float()
            softmax = some.softmax(1)
            total = some.amax(1) - softmax.amax(1).log_()  # log sum exp; the largest share is never too small for log
            torch.sub(total, some.gather(1, wanted)[:, 0], alpha=1 - smoothing, out=loss)
            softmax.scatter_add_(1, wanted, torch.full(wanted.shape, smoothing - 1))
            if smoothing:
                loss.sub_(some.mean(1), alpha=smoothing)
                softmax.sub_(smoothing / some.shape[1])
            change.copy_(softmax)
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * given[0][:, None].to(gradient.dtype), None, None
