"""Who sees whom, by explicit loops over queries and keys."""

import pytest
import torch

from tests.small import random_batch
from unmask.see import Everything, LeftToRight, Permuted, Prefix, RightToLeft, visible


@pytest.mark.parametrize("see", [Everything(), LeftToRight()], ids=["everything", "left"])
def test_a_query_sees_exactly_what_the_rule_allows(see):
    batch = random_batch(rows=2, length=32, examples=3)
    found = visible(batch.replace(rank=see.rank(batch)))
    for row in range(2):
        for query in range(32):
            for key in range(32):
                same = batch.example[row, query] == batch.example[row, key]
                if batch.example[row, query] < 0:
                    assert not found[row, query, key] or same
                    continue
                allowed = bool(same) and (see.pattern == "everything" or key <= query)
                assert bool(found[row, query, key]) == allowed


@pytest.mark.parametrize("see", [Everything(), LeftToRight()], ids=["everything", "left"])
def test_every_token_sees_itself(see):
    batch = random_batch(rows=2, length=24, examples=2)
    assert torch.diagonal(visible(batch.replace(rank=see.rank(batch))), dim1=1, dim2=2).all()


def test_without_a_rank_nothing_can_be_seen():
    with pytest.raises(AssertionError, match="see has not been applied"):
        visible(random_batch(rows=1, length=16))


EVERYTHING, PREFIX, LEFT, RIGHT = range(4)  # the modes of UniLM's rows
VIEWS = {EVERYTHING: Everything(), PREFIX: Prefix(), LEFT: LeftToRight(), RIGHT: RightToLeft()}


def may_see(mode: int, batch, row: int, query: int, key: int) -> bool:
    """The rule of each view, told by the places of query and key."""
    if batch.example[row, query] != batch.example[row, key]:
        return False
    if mode == PREFIX:
        first = batch.segment[row, key] == 0
        return bool(first) or (bool(batch.segment[row, query] == 1) and key <= query)
    return {EVERYTHING: True, LEFT: key <= query, RIGHT: key >= query}[mode]


def check_rows(seen, batch, modes: list[int]) -> None:
    found = visible(seen)
    for row, mode in enumerate(modes):
        for query in range(batch.shape[1]):
            for key in range(batch.shape[1]):
                if batch.example[row, query] >= 0:
                    assert bool(found[row, query, key]) == may_see(mode, batch, row, query, key), (mode, query, key)


@pytest.mark.parametrize("mode", VIEWS)
def test_each_view_of_unilm_is_the_rule_of_its_paper(mode):
    batch = random_batch(rows=2, length=32, examples=2, seed=mode)
    assert set(batch.segment.unique().tolist()) == {0, 1}
    check_rows(VIEWS[mode].apply(batch), batch, [mode] * 2)
    assert torch.equal(VIEWS[mode].apply(batch).segment, batch.segment)
    assert VIEWS[mode].draw(batch, 0) is batch
    assert VIEWS[mode].reading == VIEWS[mode]


def test_a_permuted_view_reads_everything():
    batch = random_batch(rows=2, length=24, examples=2)
    assert Permuted().reading == Everything()
    assert torch.equal(Permuted().apply(batch).rank, Everything().apply(batch).rank)


def test_each_view_says_what_it_lets_tokens_see():
    given = {
        kind: view.gives & {"left", "right", "both sides", "prefix", "future hidden"} for kind, view in VIEWS.items()
    }
    assert given == {
        EVERYTHING: {"both sides"}, PREFIX: {"prefix"}, LEFT: {"left", "future hidden"}, RIGHT: {"right"},
    }  # fmt: skip
