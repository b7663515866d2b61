"""The machine: on a CPU that has instructions for bfloat16, a model trains in bfloat16; elsewhere in float32."""

import json
import subprocess
import sys

import pytest
import torch

from tests.contracts import every
from unmask import recipes
from unmask.contracts.case import without_dropout
from unmask.contracts.training import batches
from unmask.train import Trainer, machine, training_machine


@pytest.mark.parametrize("instructions", [True, False])
def test_a_cpu_trains_in_bfloat16_if_it_has_the_instructions(monkeypatch, instructions):
    monkeypatch.setattr(machine, "has_bfloat16", lambda: instructions)
    found = training_machine("cpu", compiled=True, recorded=True)
    assert (found.device, found.half, found.compiled, found.recorded) == ("cpu", instructions, True, False)


def test_a_gpu_trains_in_bfloat16_and_is_recorded(monkeypatch):
    monkeypatch.setattr(machine, "keep_freed_memory", lambda: pytest.fail("the memory of a GPU is not glibc's"))
    found = training_machine("cuda:1", recorded=True)
    assert found.half
    assert found.recorded


def test_instructions_are_unknown_where_torch_cannot_tell(monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert not machine.has_bfloat16()


@pytest.mark.parametrize("name", recipes.names())
def test_gradients_in_bfloat16_are_near_those_in_float32(name):
    recipe = without_dropout(every.case(name).recipe)
    case = every.make_case(recipe, every.SMALL)
    losses, gradients = [], []
    for half in (False, True):
        trainer = Trainer(case.build(recipe), recipe.optimise, machine.Machine(half=half), 0)
        losses.append(trainer.gradients(batches(case)[:1], {}, 1)["minimised"])
        found = [weight.grad for weight in trainer.system.parameters() if weight.grad is not None]
        assert {gradient.dtype for gradient in found} == {torch.float32}
        gradients.append(torch.cat([gradient.flatten() for gradient in found]))
    assert not torch.equal(*gradients)
    torch.testing.assert_close(*losses, rtol=0.01, atol=0)
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can keep its memory")
def test_freed_memory_is_kept():
    """A large block that was freed is used again without a page fault for each of its pages."""
    code = """
import resource, torch
from unmask.train.machine import keep_freed_memory
keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)  # 64 MB are 16,384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print([faults() for _ in range(10)][5:])  # after a few blocks, one fits
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert max(json.loads(done.stdout)) < 1000
