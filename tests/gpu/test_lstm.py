"""The LSTM on a GPU: cuDNN gives what the CPU gives, finds its weights in one piece, and runs train. Skipped without a GPU."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

from tests.backbone.test_lstm import STILL, network, padded
from tests.backbone.test_two_way_lstm import network as two_way
from tests.backbone.test_two_way_lstm import spelled
from tests.small import random_batch
from unmask.backbone.lstm_layer import LSTMLayer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


@pytest.mark.parametrize("training", [True, False])
def test_cudnn_gives_the_vectors_cells_and_gradients_of_the_cpu(training):
    made, batch = network(**STILL).train(training), random_batch(rows=4, length=24, padding=0)
    found = []
    for device in ("cpu", "cuda"):
        model = copy.deepcopy(made).to(device)
        hidden, state = model(batch.to(device), model.cache(4))
        hidden.last.square().sum().backward()
        tensors = [*hidden.layers, *(t for cells in state for t in (cells.output, cells.cell))]
        found.append([t.detach().cpu() for t in (*tensors, *(p.grad for p in model.parameters()))])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_both_directions_and_padded_rows_give_the_vectors_of_the_cpu():
    made, batch = two_way(), spelled(padded([9, 4, 1], "left"))
    with torch.no_grad():
        one, other = made(batch)[0].layers, copy.deepcopy(made).cuda()(batch.to("cuda"))[0].layers
    for a, b in zip(one, other, strict=True):
        assert torch.allclose(a, b.cpu(), atol=1e-4)


@pytest.mark.parametrize("projection", [None, 16])
@pytest.mark.parametrize("half", [True, False])
def test_cudnn_does_not_have_to_copy_the_weights(projection, half):
    layer = LSTMLayer(24, 32, projection=projection, weight_dropout=0.5).cuda()
    x = torch.randn(4, 10, 24, device="cuda")
    with warnings.catch_warnings(), torch.autocast("cuda", torch.bfloat16, enabled=half):
        warnings.simplefilter("error")  # cuDNN warns if it copies
        out, _ = layer(x)
        out.float().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in layer.parameters())
