"""Trees of tensors: rows are chosen, records move, and a signature tells apart what a recording must not confuse."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
import torch

from tests.small import random_batch
from unmask.backbone import Cache, LayerMemory, TransformerXL
from unmask.batch import Batch, Record
from unmask.tree import copied, mapped, rows_of, signature, tensors


def cells(rows: int = 4) -> dict:
    """The cells of an LSTM with two layers: (h, c) for each, and how many tokens it read."""
    state = {"cells": [(torch.randn(rows, 3), torch.randn(rows, 3)) for _ in range(2)], "read": torch.tensor(7)}
    return {"forward": state, "name": "lstm", "none": None}


def test_rows_of_any_tree_are_chosen():
    tree, rows = cells(), torch.tensor([2, 0, 2])
    found = rows_of(tree, rows)
    for layer in range(2):
        for number in range(2):
            assert torch.equal(found["forward"]["cells"][layer][number], tree["forward"]["cells"][layer][number][rows])
    assert isinstance(found["forward"]["cells"][0], tuple)
    assert (int(found["forward"]["read"]), found["name"], found["none"]) == (7, "lstm", None)
    assert rows_of(None, rows) is None


def test_the_states_of_both_backbones_go_through_the_same_function():
    rows = torch.tensor([1, 1])
    memory = TransformerXL(layers=2, width=8, heads=2, head=4, feedforward=8, memory=5).build(20, "left").cache(3)
    memory = memory.replace(layers=torch.randn_like(memory.layers))
    assert torch.equal(rows_of(memory, rows).layers, memory.layers[[1, 1]])
    cache = Cache.empty(2, 3, 2, 8, 4, torch.zeros(0))
    cache = cache.replace(keys=torch.randn_like(cache.keys), filled=cache.filled + 4)
    found = rows_of(cache, rows)
    assert torch.equal(found.keys, cache.keys[[1, 1]])
    assert found.filled == 4
    found.keys.zero_()
    assert cache.keys.abs().sum() > 0  # chosen rows are copies


@dataclasses.dataclass(frozen=True)
class Columns(Record):
    columns: dict[str, torch.Tensor]
    inner: Record | None = None
    count: int = 1


def test_a_record_moves_with_all_that_its_fields_hold():
    inner = Columns({"word": torch.ones(2)}, count=2)
    moved = Columns({"word": torch.ones(2), "links": torch.ones(3)}, inner).to("meta")
    assert {tensor.device.type for tensor in tensors(moved)} == {"meta"}
    assert len(tensors(moved)) == 3
    assert (moved.count, moved.inner.count) == (1, 2)


class Named(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


def test_a_copy_has_its_own_tensors():
    tree = {"cells": cells(), "named": Named(torch.ones(2), torch.ones(2))}
    assert isinstance(copied(tree)["named"], Named)
    for one, other in zip(tensors(tree), tensors(copied(tree)), strict=True):
        assert torch.equal(one, other)
        assert one.data_ptr() != other.data_ptr()


A, B = torch.zeros(2, 3), torch.zeros(2, 3)
DIFFERENT = [
    ({"a": A}, {"b": A}),  # names
    ((A, B), [A, B]),  # kinds
    ((A, (B,)), (A, B)),  # nesting
    ({"a": A, "b": None}, {"a": None, "b": A}),  # where there is none
    (LayerMemory(A, B), {"layers": A, "real": B}),  # a record and a dict
    (LayerMemory(A, B), Columns({"layers": A, "real": B})),
    ((A, 1), (A, 2)),  # values that are not tensors
    ((A, 1), (A, True)),
    ((A, "left"), (A, "right")),
    (A, A.double()),
    (A, A.view(3, 2)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_trees_that_differ_in_more_than_numbers_have_different_signatures(one, other):
    assert signature(one) != signature(other)
    for tree in (one, other):
        again = mapped(tree, lambda tensor: tensor + 1)
        assert signature(again) == signature(tree)
        assert hash(signature(again)) == hash(signature(tree))


def test_batches_of_equal_shapes_do_not_share_a_recording():
    batch = random_batch(rows=2, length=16)
    field = torch.zeros(2, 16, dtype=torch.long)
    first, second, third = batch.replace(order=field), batch.replace(original=field), batch.replace(reuse=4)
    assert [tensor.shape for tensor in tensors(first)] == [tensor.shape for tensor in tensors(second)]
    assert len({signature(each) for each in (batch, first, second, third)}) == 4
    other: Batch = random_batch(rows=2, length=16, seed=5)
    assert signature(other) == signature(batch)
