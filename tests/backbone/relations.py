"""Random relative attention for the tests of its kernels, and how far they are from plain operations.

    TRITON_INTERPRET=1 python -m tests.backbone.relations

runs the kernels without a GPU, in Triton's interpreter, and prints a line of errors for each case.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.backbone import biased_attention, fused_attention
from unmask.backbone.relative import AttentionSide, stream_of

NAMES = ("found", "content", "key_value", "placed", "place", "both")


@dataclass(frozen=True)
class Case:
    """Sizes of a batch, and what there is in it."""

    length: int  # T
    keys: int
    queries: int | None = None  # at random places; none: every place, in order
    rows: int = 2
    heads: int = 2
    head: int = 16
    ahead: bool = True  # there are distances to what comes after
    left: bool = False  # nothing is seen that comes after
    segments: bool = False
    shared: bool = True  # one table of distances for all rows


CASES = {
    "left to right": Case(40, 72, ahead=False, left=True),
    "left to right, all distances": Case(40, 72, left=True, heads=1),
    "any order": Case(33, 50, segments=True),
    "some places": Case(40, 77, queries=35, segments=True),
    "some places, each row its table": Case(24, 40, queries=7, shared=False, ahead=False, heads=1),
    "each row its table": Case(20, 20, segments=True, shared=False, head=24),
    "wide heads": Case(35, 70, head=64, left=True, ahead=False, rows=1, heads=1),
    "one query": Case(1, 9),
    "one query and key": Case(1, 1, left=True, ahead=False),
}


def made(
    case: Case, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> tuple[dict[str, Tensor | None], AttentionSide]:
    """What attention is given by content, and by relation. Some queries see nothing, some keys are seen by nobody."""
    random = torch.Generator().manual_seed(case.length)
    queries, inner = case.queries or case.length, case.heads * case.head

    def numbers(rows: int, tokens: int, width: int) -> Tensor:
        """B H T d as projections give it: heads side by side in memory."""
        x = torch.randn(rows, tokens, width, generator=random).to(device, dtype)
        return x.unflatten(2, (-1, case.head)).transpose(1, 2)

    distances = case.keys + (case.length if case.ahead else 0)
    given: dict[str, Tensor | None] = {
        "content": numbers(case.rows, queries, inner),
        "key_value": numbers(case.rows, case.keys, 2 * inner),
        "placed": numbers(case.rows, queries, inner),
        "place": numbers(1 if case.shared else case.rows, distances, inner),
        "both": torch.randn(case.rows, case.heads, queries, 2, generator=random).to(device, dtype)
        if case.segments
        else None,
    }
    at = torch.arange(case.length).expand(case.rows, -1)
    if case.queries is not None:
        at = torch.randint(0, case.length, (case.rows, queries), generator=random)
    sees = torch.rand(case.rows, queries, case.keys, generator=random) < 0.7
    if case.left:
        sees = torch.arange(case.keys) <= at[:, :, None] + case.keys - case.length
    sees[:, queries // 2 : queries // 2 + max(1, queries // 8) - (queries == 1)] = False
    sees[0, :, case.keys // 3 : case.keys // 2] = False
    same = torch.rand(sees.shape, generator=random) < 0.5 if case.segments else None
    stream = stream_of(sees.to(device), None if same is None else same.to(device))
    return given, stream if case.queries is None else stream.replace(column=(case.length - 1 - at).to(device))


def plain(given: dict[str, Tensor | None], stream: AttentionSide) -> Tensor:
    return biased_attention.look(*given.values(), stream.seen, stream.column)  # type: ignore[arg-type]


def quick(given: dict[str, Tensor | None], stream: AttentionSide) -> Tensor:
    return fused_attention.look(*given.values(), stream.seen, stream.end, stream.begin, stream.column)[0]


def results(look, given: dict[str, Tensor | None], stream: AttentionSide) -> dict[str, Tensor]:  # type: ignore[no-untyped-def]
    """What is found, and the gradients of everything given, of a random sum of it."""
    leaves = {name: None if x is None else x.detach().requires_grad_() for name, x in given.items()}
    found = look(leaves, stream)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).to(found.device, found.dtype)
    there = {name: x for name, x in leaves.items() if x is not None}
    gradients = torch.autograd.grad((found * weight).sum(), list(there.values()))
    return {"found": found.detach()} | dict(zip(there, gradients, strict=True))


def errors(case: Case, device: str = "cpu", dtype: torch.dtype = torch.float32, look=quick) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Of each result the distance to plain operations in float64, in parts of its length."""
    given, stream = made(case, device, dtype)
    found = results(look, given, stream)
    exact = {name: None if x is None else x.double() for name, x in given.items()}
    expected = results(plain, exact, stream)
    assert set(found) == set(expected)
    return {name: float((found[name].double() - x).norm() / x.norm().clamp(min=1.0)) for name, x in expected.items()}


if __name__ == "__main__":
    for name, case in CASES.items():
        print(json.dumps({"case": name} | errors(case)), flush=True)
