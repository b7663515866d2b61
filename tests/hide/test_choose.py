"""Whole units are chosen within the budget, evenly, as a function of the row and the visit."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small import random_batch
from unmask.batch import Batch
from unmask.hide import Tokens, Words
from unmask.hide.choice import choose, places, targets


def batch_of_units(rows: list[list[int]]) -> Batch:
    """Rows of words of these sizes; 0 is a special token. Padded to the same length."""
    length = max(1, *(sum(size or 1 for size in row) for row in rows))
    word = torch.full((len(rows), length), -1)
    for r, row in enumerate(rows):
        at, number = 0, 0
        for size in row:
            if size:
                word[r, at : at + size] = number
                number += 1
            at += size or 1
    flat = torch.arange(len(rows) * length).view(len(rows), length)
    zero = torch.zeros_like(word)
    return Batch(
        ids=flat + 5, columns={"word": word, "sentence": zero}, example=zero, segment=zero, position=zero, row=torch.arange(len(rows)),
        visit=torch.zeros(len(rows), dtype=torch.long), summary=flat[:, 0], label=zero[:, 0], counted=zero[:, 0].float(),
    )  # fmt: skip


@given(
    rows=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=20), min_size=1, max_size=4),
    budget=st.floats(0.01, 1.0),
    seed=st.integers(0, 1 << 40),
)
@settings(max_examples=150, deadline=None)
def test_any_choice_is_whole_units_within_the_budget(rows, budget, seed):
    batch = batch_of_units(rows)
    chosen = choose(batch, batch.columns["word"], budget, budget, seed, batch.visit)
    most = places(budget, batch.shape[1])
    for r in range(len(rows)):
        units = batch.columns["word"][r]
        assert not chosen[r][units < 0].any()
        taken = sorted(set(units[chosen[r]].tolist()))
        sizes = {u: int((units == u).sum()) for u in set(units.tolist()) - {-1}}
        assert int(chosen[r].sum()) == sum(sizes[u] for u in taken)  # whole units only
        limit = min(most, max(1, round(float(torch.tensor(len(units[units >= 0])) * budget))))
        assert int(chosen[r].sum()) <= limit or len(taken) == 1  # the first alone may be larger
        assert int(chosen[r].sum()) <= most  # but never than the places there are
        if any(size <= most for size in sizes.values()):
            assert taken  # something is hidden wherever something can be


@given(
    rows=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=15), min_size=1, max_size=3),
    budget=st.floats(0.05, 1.0),
)
@settings(max_examples=100, deadline=None)
def test_targets_are_the_chosen_tokens_with_the_ends_of_their_units(rows, budget):
    batch = batch_of_units(rows)
    chosen = choose(batch, batch.columns["word"], budget, budget, 1, batch.visit)
    most = places(budget, batch.shape[1])
    found = targets(batch, batch.columns["word"], chosen, most)
    assert len(found.where) == len(rows) * most
    used = found.weight > 0
    assert found.where[used].tolist() == chosen.flatten().nonzero().flatten().tolist()
    word = batch.columns["word"].tolist()
    length = batch.shape[1]
    for where, ids, start, end in zip(
        *(t[used].tolist() for t in (found.where, found.ids, found.start, found.end)), strict=True
    ):
        row, place = divmod(where, length)
        same = [p for p in range(length) if word[row][p] == word[row][place]]
        assert ids == batch.ids[row, place]
        assert (start, end) == (row * length + same[0], row * length + same[-1])
    unused = ~used
    assert torch.equal(found.start[unused], found.where[unused])
    assert torch.equal(found.end[unused], found.where[unused])


def test_single_tokens_use_the_whole_budget_rounded_per_row():
    batch = random_batch(rows=20, length=64, examples=2)
    units = Tokens().label(batch, 0, batch.visit)
    for budget in (0.05, 0.15, 0.5, 1.0):
        count = choose(batch, units, budget, budget, 0, batch.visit).sum(1)
        expected = [max(1, round(budget * n)) for n in (units >= 0).sum(1).tolist()]
        assert count.tolist() == expected


def test_every_token_is_chosen_equally_often():
    batch = random_batch(rows=1, length=40, padding=4)
    again = batch.replace(ids=batch.ids.expand(4000, 40), row=batch.row.expand(4000))
    hits = (
        choose(again, Tokens().label(batch, 0, batch.visit).expand(4000, 40), 0.15, 0.15, 0, torch.arange(4000))
        .sum(0)
        .float()
    )
    candidates = hits[batch.columns["word"][0] >= 0]
    assert (hits[batch.columns["word"][0] < 0] == 0).all()
    share = round(0.15 * len(candidates)) / len(candidates)
    expected = 4000 * share
    assert (((candidates - expected) ** 2) / (expected * (1 - share))).sum() < 75  # chi-square of 33 degrees, 99.99%


def test_a_unit_larger_than_all_places_is_passed_over():
    batch = batch_of_units([[9, 1]])
    for visit in range(50):
        chosen = choose(batch, batch.columns["word"], 0.2, 0.2, 0, batch.visit + visit)
        assert chosen[0].tolist() == [False] * 9 + [True]


def test_a_first_unit_over_the_budget_is_taken_alone():
    batch = batch_of_units([[2, 2, 2, 2, 0, 0, 0, 0, 0, 0]])  # 8 tokens, 14 with the specials
    assert places(0.15, 14) == 2
    for visit in range(20):
        assert int(choose(batch, batch.columns["word"], 0.15, 0.15, 0, batch.visit + visit).sum()) == 2


def test_a_row_of_special_tokens_hides_nothing():
    batch = batch_of_units([[0, 0, 0], [1, 1, 1]])
    chosen = choose(batch, batch.columns["word"], 0.5, 0.5, 0, batch.visit)
    assert not chosen[0].any()
    found = targets(batch, batch.columns["word"], chosen, places(0.5, 3))
    assert (found.weight.view(2, -1)[0] == 0).all()


def test_the_choice_depends_on_seed_row_and_visit_and_not_on_the_neighbours():
    batch = random_batch(rows=6, length=64)
    units = Words().label(batch, 0, batch.visit)
    chosen = choose(batch, units, 0.3, 0.3, 1, batch.visit)
    some = [3, 0]
    alone = choose(batch.replace(ids=batch.ids[some], row=batch.row[some]), units[some], 0.3, 0.3, 1, batch.visit[some])
    assert torch.equal(alone, chosen[some])
    for other in (
        choose(batch, units, 0.3, 0.3, 2, batch.visit),
        choose(batch, units, 0.3, 0.3, 1, batch.visit + 1),
        choose(batch.replace(row=batch.row + 1), units, 0.3, 0.3, 1, batch.visit),
    ):
        assert not torch.equal(other, chosen)


def test_places_are_the_rounded_budget_and_at_least_one():
    assert [places(0.15, n) for n in (1, 3, 10, 128, 512)] == [1, 1, 2, 19, 77]
