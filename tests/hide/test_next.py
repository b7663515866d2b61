"""The targets of a left-to-right model: the next token, the one after it, against explicit loops."""

import torch

from tests.small import random_batch, vocabulary
from unmask.hide import Next


def by_loops(batch, ahead):
    """(place, id) of every prediction that counts."""
    rows, length = batch.shape
    found = []
    for row in range(rows):
        for place in range(length):
            there = place + ahead
            if (
                there < length
                and batch.example[row, place] >= 0
                and batch.example[row, there] == batch.example[row, place]
            ):
                found.append((row * length + place, int(batch.ids[row, there])))
    return found


def used(targets):
    counted = targets.weight > 0
    return list(zip(targets.at[counted].tolist(), targets.ids[counted].tolist(), strict=True))


def test_every_token_predicts_those_after_it_in_its_own_example():
    batch = random_batch(rows=4, length=40, examples=3)
    hidden = Next(ahead=3).apply(batch, vocabulary(), 0)
    assert torch.equal(hidden.ids, batch.ids)
    assert list(hidden.targets) == ["tokens", "ahead_2", "ahead_3"]
    for ahead, targets in enumerate(hidden.targets.values(), 1):
        assert used(targets) == by_loops(batch, ahead)
        assert set(targets.weight.tolist()) == {0.0, 1.0}
        assert torch.equal(targets.where, targets.at + ahead)
        assert torch.equal(targets.start, targets.where)
        assert torch.equal(targets.end, targets.start)


def test_one_ahead_has_no_further_targets():
    hidden = Next().apply(random_batch(rows=2, length=16), vocabulary(), 0)
    assert list(hidden.targets) == ["tokens"]
    assert used(hidden.targets["tokens"]) == by_loops(hidden, 1)
