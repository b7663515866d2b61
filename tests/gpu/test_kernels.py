"""The GPU's kernels give what the CPU's give. Skipped where there is no GPU."""

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", recipes.names())
def test_packed_rows_in_bfloat16_on_the_gpu_equal_float32_on_the_cpu(name):
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch, counts = system.prepare(random_batch(rows=4, length=64, examples=3))
    with torch.no_grad():
        expected = system.step(batch, None)[0]["tokens"].total
        on_gpu, gpu_counts = system.cuda().prepare(random_batch(rows=4, length=64, examples=3).to("cuda"))
        with torch.autocast("cuda", torch.bfloat16):
            found = system.step(on_gpu, None)[0]["tokens"].total.cpu()
            last = system.look(on_gpu).last.float().cpu()
        dense = system.cpu().look(batch).last
    assert torch.equal(on_gpu.ids.cpu(), batch.ids), "hiding must be the same on any device"
    assert torch.equal(on_gpu.targets.where.cpu(), batch.targets.where)
    assert gpu_counts["tokens"].cpu() == counts["tokens"]
    assert abs(found - expected) / expected < 5e-3
    real = batch.real
    assert (last - dense)[real].norm() / dense[real].norm() < 2e-2


@pytest.mark.parametrize("name", recipes.names())
def test_a_compiled_step_gives_the_loss_of_an_eager_one(name):
    recipe = recipes.get(name, size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).cuda().eval()
    batch, _ = system.prepare(random_batch(rows=4, length=64, examples=3).to("cuda"))
    with torch.autocast("cuda", torch.bfloat16):
        eager = system.step(batch, None)[0]["tokens"].total
        compiled = torch.compile(system.step, dynamic=False)(batch, None)[0]["tokens"].total
    assert abs(float(compiled - eager)) / float(eager) < 5e-3
