"""Gradients that pass through a kernel in float16, scaled so that small ones do not become 0.

Under autocast, cuDNN's LSTM computes in float16, also where everything else is in bfloat16. The smallest normal number of float16
is 6e-5, and the gradient of one token in a mean over thousands of tokens is smaller. So the gradients that come in are multiplied by a power
of two that brings the largest to about 1, and the gradients that go out are divided by it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class GradientScale:
    """The scale of one call of a kernel: found when gradients come in, used when they go out."""

    def __init__(self) -> None:
        self.factor: Tensor | None = None

    def before(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """What the kernel reads, in the precision of the rest. Its gradients are scaled back."""
        found: tuple[Tensor, ...] = _Before.apply(self, *tensors)
        return found

    def after(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """What the kernel made, in the precision of the rest. Gradients that come in are scaled."""
        found: tuple[Tensor, ...] = _After.apply(self, *tensors)
        return found


class _Before(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scale: GradientScale, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.scale = scale
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        factor = ctx.scale.factor
        return None, *((gradient.float() / factor).to(gradient.dtype) for gradient in given)


class _After(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scale: GradientScale, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.scale = scale
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        largest = torch.stack([gradient.abs().amax().float() for gradient in given]).amax()
        exponent = -largest.clamp(min=2.0**-60, max=2.0**60).log2().floor()
        ctx.scale.factor = torch.exp2(exponent)  # a power of two: scaling rounds nothing
        return None, *((gradient.float() * ctx.scale.factor).to(gradient.dtype) for gradient in given)
