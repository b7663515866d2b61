"""Who sees whom, by explicit loops over queries and keys."""

import pytest
import torch

from tests.small import random_batch
from unmask.see import Everything, LeftToRight, visible


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
