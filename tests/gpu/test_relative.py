"""The kernels of fused relative attention on a GPU give what plain operations give. Skipped where there is no GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.backbone.relations import CASES, Case, errors, made, plain, quick, results
from unmask.backbone import fused_attention

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not fused_attention.AVAILABLE, reason="needs a GPU and Triton"
)

LARGE = {
    "Transformer-XL base": Case(512, 1024, heads=8, head=64, left=True, ahead=False),
    "XLNet base, content": Case(512, 896, heads=12, head=64, segments=True),
    "XLNet base, content, both directions": Case(512, 896, heads=12, head=64, segments=True, shared=False),
    "XLNet base, query": Case(512, 896, queries=85, heads=12, head=64, segments=True),
    "wide heads": Case(100, 164, head=128, segments=True),
    "very wide heads": Case(70, 130, head=200, left=True),
    "odd sizes": Case(101, 201, queries=85, heads=3, head=40, segments=True),
}
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", [*CASES, *LARGE])
def test_kernels_give_what_plain_operations_give(case, dtype):
    found = errors((CASES | LARGE)[case], "cuda", dtype)
    assert all(error < TOLERANCE[dtype] for error in found.values()), found


@pytest.mark.parametrize("case", CASES)
def test_compiled_they_give_the_same(case):
    torch.compiler.reset()  # one function is not compiled for more than eight shapes
    found = errors(CASES[case], "cuda", look=torch.compile(quick, dynamic=False, fullgraph=True))
    assert all(error < TOLERANCE[torch.float32] for error in found.values()), found


def test_the_operator_keeps_the_rules_of_the_compiler():
    for case in ("left to right", "some places", "each row its table"):
        given, stream = made(CASES[case], "cuda")
        leaves = [None if x is None else x.requires_grad_() for x in given.values()]
        torch.library.opcheck(fused_attention.look, (*leaves, stream.seen, stream.end, stream.begin, stream.column))


@pytest.mark.parametrize("case", ["left to right", "some places"])
def test_recorded_and_replayed_on_other_numbers_they_give_the_same(case):
    given, stream = made(CASES[case], "cuda")
    for _ in range(3):  # kernels are compiled, libraries choose theirs
        results(quick, given, stream)
    weight = torch.randn_like(given["content"])
    leaves = {name: None if x is None else x.clone().requires_grad_() for name, x in given.items()}
    there = [x for x in leaves.values() if x is not None]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.autograd.grad((quick(leaves, stream) * weight).sum(), there)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = quick(leaves, stream)
        gradients = torch.autograd.grad((found * weight).sum(), there)
    with torch.no_grad():
        for x in there:
            x.copy_(torch.randn_like(x))
    graph.replay()
    expected = plain(leaves, stream)
    assert torch.allclose(found, expected, atol=1e-4)
    for one, other in zip(gradients, torch.autograd.grad((expected * weight).sum(), there), strict=True):
        assert torch.allclose(one, other, atol=1e-3)


def test_more_numbers_than_32_bits_can_count_are_no_problem():
    case = Case(512, 1024, rows=1, heads=8, head=16, left=True, ahead=False)
    given, stream = made(case, "cuda", torch.bfloat16)
    rows = 600  # 600 x 8 x 512 x 1024 scores of distances
    many = {
        name: None if x is None else x if name == "place" else x.expand(rows, *x.shape[1:]) for name, x in given.items()
    }
    wide = replace(
        stream, **{n: x.expand(rows, *x.shape[1:]).contiguous() for n, x in vars(stream).items() if x is not None}
    )
    with torch.no_grad():
        assert torch.allclose(quick(many, wide)[-1], quick(given, stream)[0], atol=2e-2)
