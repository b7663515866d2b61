"""The losses of targets that are computed in parts are those of PyTorch."""

import pytest
import torch
import torch.nn.functional as F

from unmask.predict import token_losses as module
from unmask.predict.token_losses import token_losses

N, V = 11, 13


def made(dtype=torch.float32, *, scale=1.0):
    random = torch.Generator().manual_seed(0)
    scores = (scale * torch.randn(N, V, generator=random)).to(dtype).requires_grad_()
    return scores, torch.randint(V, (N,), generator=random), torch.rand(N, generator=random)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("part", [V, 3 * V, 2**18], ids=["one row", "three rows", "all rows"])
def test_losses_and_gradients_are_those_of_pytorch(monkeypatch, smoothing, part):
    monkeypatch.setattr(module, "PART", part)
    scores, ids, weight = made()
    found = token_losses(scores, ids, smoothing)
    expected = F.cross_entropy(scores, ids, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    one, other = (torch.autograd.grad((losses * weight).sum(), scores)[0] for losses in (found, expected))
    torch.testing.assert_close(one, other)


def test_losses_of_bfloat16_are_float32_and_gradients_bfloat16():
    scores, ids, weight = made(torch.bfloat16)
    losses = token_losses(scores, ids)
    assert losses.dtype == torch.float32
    (gradient,) = torch.autograd.grad((losses * weight).sum(), scores)
    assert gradient.dtype == torch.bfloat16
    exact = scores.detach().float().requires_grad_()
    (wanted,) = torch.autograd.grad((F.cross_entropy(exact, ids, reduction="none") * weight).sum(), exact)
    torch.testing.assert_close(gradient.float(), wanted, rtol=0.02, atol=1e-3)


def test_a_target_without_any_chance_has_a_finite_loss():
    scores, ids, _ = made(scale=1000.0)
    torch.testing.assert_close(token_losses(scores, ids), F.cross_entropy(scores, ids, reduction="none"))
