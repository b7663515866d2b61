"""Layers with a window on the GPU: the kernels that read no mask give what the dense kernel gives. Skipped without a GPU."""

from __future__ import annotations

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
WINDOW = ["system.backbone.local.window=8", "system.backbone.layers=4"]
ROTARY = ["system.backbone.positions=Rotary(local_theta=50)", "system.backbone.local=Local(window=8)"]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name, settings", [
    ("modernbert", WINDOW), ("gpt2", ROTARY), ("gpt-bert", ROTARY)
], ids=["everything", "left", "ranked"])  # fmt: skip
def test_packed_rows_longer_than_the_window_equal_float32_on_the_cpu(name, settings, compiled):
    recipe = recipes.get(name, size="tiny", settings=settings)
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch, _ = system.hide(random_batch(rows=4, length=128, examples=3))
    with torch.no_grad():
        expected = system.step(batch, None)[0]["tokens"].total
        dense = system.backbone(batch)[0].last
        system.cuda()
        if compiled:
            system.compile_parts()
        with torch.autocast("cuda", torch.bfloat16):
            on_gpu = batch.to("cuda")
            found = system.step(on_gpu, None)[0]["tokens"].total.cpu()
            last = system.backbone(on_gpu)[0].last.float().cpu()
    assert abs(found - expected) / expected < 5e-3
    assert (last - dense)[batch.real].norm() / dense[batch.real].norm() < 2e-2
