"""Gradients through a kernel in float16 keep numbers that float16 cannot hold."""

import pytest
import torch

from unmask.backbone.scaled_gradients import GradientScale


def gradients(x, weight, incoming, *, scaled):
    """Of a product that is computed in float16, as cuDNN's LSTM is."""
    x, weight = (tensor.clone().requires_grad_() for tensor in (x, weight))
    scale = GradientScale()
    read, factor = scale.before(x, weight) if scaled else (x, weight)
    made = read.half() @ factor.half().T
    out = made.float() if not scaled else scale.after(made.float())[0]
    out.backward(incoming)
    return x.grad, weight.grad


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-4, 1.0, 1e6])
def test_gradients_of_any_size_pass(size):
    torch.manual_seed(0)
    x, weight, incoming = torch.randn(64, 8), torch.randn(8, 8) / 3, torch.randn(64, 8) * size
    expected = incoming @ weight, incoming.T @ x
    for found, wanted in zip(gradients(x, weight, incoming, scaled=True), expected, strict=True):
        assert (found - wanted).norm() < 2e-3 * wanted.norm()


def test_without_a_scale_they_become_zero():
    torch.manual_seed(0)
    x, weight, incoming = torch.randn(64, 8), torch.randn(8, 8) / 3, torch.randn(64, 8) * 1e-9
    assert not any(found.any() for found in gradients(x, weight, incoming, scaled=False))


def test_gradients_of_zero_stay_zero():
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    assert not any(found.any() for found in gradients(x, weight, torch.zeros(4, 8), scaled=True))
