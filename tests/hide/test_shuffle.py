"""StructBERT's shuffled runs: only the order changes, within runs of the given size, and every order is as likely."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tests.small import masking, random_batch, shuffled, vocabulary
from unmask import recipes
from unmask.errors import UserError
from unmask.hide import Spans, Tokens, Words, apply_rules
from unmask.hide.choice import places


def parted(after, rows: int, hide):
    """The targets of the masked tokens and of the shuffled ones, each a table of rows by places."""
    length = after.ids.shape[1]
    masked = places(hide[0].budget, length)
    columns = {
        n: getattr(after.targets["tokens"], n).view(rows, -1) for n in ("where", "ids", "start", "end", "weight")
    }
    first, second = ({n: c[:, part] for n, c in columns.items()} for part in (slice(masked), slice(masked, None)))
    return first, second


def runs_of(second, row: int, length: int) -> list[tuple[int, int]]:
    """The first and last place of every shuffled run of a row."""
    used = second["weight"][row] > 0
    ends = zip(second["start"][row][used].tolist(), second["end"][row][used].tolist(), strict=True)
    return sorted({(a - row * length, b - row * length) for a, b in ends})


@given(
    rows=st.integers(1, 3), length=st.integers(20, 60), examples=st.integers(1, 3), padding=st.integers(0, 5),
    size=st.integers(2, 5), budget=st.floats(0.01, 1.0), masked=st.floats(0.05, 0.5), seed=st.integers(0, 1 << 30),
    units=st.sampled_from([Tokens(), Words(), Spans()]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_only_the_order_changes_inside_runs_of_tokens_that_are_not_hidden(
    rows, length, examples, padding, size, budget, masked, seed, units
):
    batch = random_batch(rows, length, examples, seed=seed, padding=padding)
    hide = (masking(units=units, budget=masked), shuffled(budget, size))
    after = apply_rules(hide, batch, vocabulary(), seed)
    plain = masking(units=units, budget=masked).apply(batch, vocabulary(), seed)  # masked alike, nothing shuffled
    first, second = parted(after, rows, hide)
    assert torch.equal(first["where"].flatten(), plain.targets["tokens"].where)
    for row in range(rows):
        hidden = {
            int(w) - row * length for w, used in zip(first["where"][row], first["weight"][row], strict=True) if used
        }
        moved: set[int] = set()
        for start, end in runs_of(second, row, length):
            at = range(start, end + 1)
            assert len(at) == size
            assert not moved & set(at)
            moved |= set(at)
            assert not hidden & set(at)
            assert all(batch.columns["word"][row, p] >= 0 for p in at)
            assert len({int(batch.example[row, p]) for p in at}) == 1
            assert sorted(after.ids[row, at].tolist()) == sorted(batch.ids[row, at].tolist())
        for p in set(range(length)) - moved:
            assert after.ids[row, p] == plain.ids[row, p]
        used = second["weight"][row] > 0
        assert sorted((second["where"][row][used] - row * length).tolist()) == sorted(moved)  # each token once
        assert torch.equal(second["ids"][row][used], batch.ids.flatten()[second["where"][row][used]])  # the original


@given(seed=st.integers(0, 1 << 30), length=st.integers(30, 90), budget=st.floats(0.05, 1.0), size=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_the_budget_is_a_share_of_the_row_and_one_run_at_least(seed, length, budget, size):
    batch = random_batch(2, length, seed=seed, padding=0)
    hide = (masking(budget=0.15), shuffled(budget, size))
    first, second = parted(apply_rules(hide, batch, vocabulary(), seed), 2, hide)
    for row in range(2):
        hidden = {int(w) % length for w, used in zip(first["where"][row], first["weight"][row], strict=True) if used}
        free = [p for p in range(length) if batch.columns["word"][row, p] >= 0 and p not in hidden]
        whole = {  # for each place where the grid may begin, the tokens in runs that are whole
            offset: size * sum(all(p + k in free for k in range(size)) for p in range(length) if p % size == offset)
            for offset in range(size)
        }
        found = runs_of(second, row, length)
        if not any(whole.values()):
            assert not found
            continue
        text = int((batch.columns["word"][row] >= 0).sum())
        limit = max(size, round(float(torch.tensor(text) * budget)))
        assert len(found) * size <= limit
        assert len(found) * size > limit - size or len(found) * size >= min(whole.values())
        assert len({start % size for start, _ in found}) == 1  # one grid for the row


@pytest.mark.parametrize("size", [2, 3])
def test_all_orders_come_equally_often(size):
    batch = random_batch(rows=1, length=24, padding=0, size=5000)
    assert len(set(batch.ids[0].tolist()) - {2, 3}) == 22
    many = 3000
    again = batch.replace(
        **{n: getattr(batch, n).expand(many, 24) for n in ("ids", "example", "segment", "position")},
        columns={n: c.expand(many, 24) for n, c in batch.columns.items()},
        row=torch.arange(many), visit=torch.zeros(many, dtype=torch.long),
    )  # fmt: skip
    hide = (masking(budget=0.05, mask=0.0, random=0.0), shuffled(0.3, size))
    after = apply_rules(hide, again, vocabulary(5000), 3)
    _, second = parted(after, many, hide)
    counts = dict.fromkeys(permutations(range(size)), 0)
    for row in range(many):
        for start, end in runs_of(second, row, 24):
            before = batch.ids[0, start : end + 1].tolist()
            counts[tuple(before.index(i) for i in after.ids[row, start : end + 1].tolist())] += 1
    expected = sum(counts.values()) / len(counts)
    assert expected > 300
    assert sum((c - expected) ** 2 / expected for c in counts.values()) < chi2.ppf(0.9999, len(counts) - 1)


def test_every_place_can_be_shuffled_and_the_grid_moves_from_row_to_row():
    batch = random_batch(rows=200, length=32, padding=0)
    hide = (masking(budget=0.05), shuffled(0.2, 3))
    _, second = parted(apply_rules(hide, batch, vocabulary(), 0), 200, hide)
    starts = [start for row in range(200) for start, _ in runs_of(second, row, 32)]
    assert {start % 3 for start in starts} == {0, 1, 2}
    assert set(starts) == set(range(1, 29))  # from behind [CLS] to before [SEP]


@pytest.mark.parametrize("length", [16, 32, 64, 128])
def test_the_recipe_shuffles_at_every_row_length(length):
    batch = random_batch(rows=50, length=length, padding=0)
    hide = recipes.get("structbert").hide
    assert (hide[1].budget, hide[1].units.size) == (0.05, 3)
    _, second = parted(apply_rules(hide, batch, vocabulary(), 0), 50, hide)
    assert (second["weight"].sum(1) >= 3).float().mean() > 0.9
    assert (second["weight"].sum(1) <= max(3, 0.05 * length)).all()


def test_another_visit_shuffles_other_runs_and_static_masking_comes_round():
    batch = random_batch(rows=4, length=64)
    hide = (masking(copies=2), shuffled(0.2, copies=2))
    ids = [apply_rules(hide, batch.replace(visit=batch.visit + v), vocabulary(), 0).ids for v in range(4)]
    assert torch.equal(ids[0], ids[2])
    assert torch.equal(ids[1], ids[3])
    assert not torch.equal(ids[0], ids[1])


def test_unknown_tokens_are_in_no_run_and_do_not_count_towards_the_budget():
    batch = random_batch(rows=50, length=96, padding=0)
    unknown = (batch.columns["word"] >= 0) & (torch.arange(96) % 7 == 0)
    batch = batch.replace(ids=torch.where(unknown, 1, batch.ids))
    hide = (masking(), shuffled(0.3, 3))
    after = apply_rules(hide, batch, vocabulary(), 0)
    _, second = parted(after, 50, hide)
    limit = (((batch.columns["word"] >= 0) & ~unknown).sum(1) * 0.3).round()
    assert (second["weight"].sum(1) <= limit).all()
    for row in range(50):
        for start, end in runs_of(second, row, 96):
            assert end - start == 2
            assert not unknown[row, start : end + 1].any()
    assert torch.equal(after.ids[unknown], batch.ids[unknown])
    assert torch.equal(after.columns["word"] < 0, batch.columns["word"] < 0)


def test_no_budget_shuffles_nothing_and_adds_no_places():
    batch = random_batch(rows=2, length=64)
    assert len(masking().apply(batch, vocabulary(), 0).targets["tokens"].where) == 2 * places(0.15, 64)


def test_every_column_follows_its_token():
    batch = random_batch(rows=20, length=64)
    batch = batch.replace(columns=batch.columns | {"id": batch.ids})
    after = apply_rules(shuffled(0.5), batch, vocabulary(), 0)
    assert not torch.equal(after.ids, batch.ids)
    assert torch.equal(after.columns["id"], after.ids)


def test_impossible_shuffling_is_an_error():
    with pytest.raises(UserError, match=r"hide\.units\.size must be 2 or more tokens, got 1"):
        shuffled(0.1, 1)
    with pytest.raises(UserError, match=r"hide\.budget must be in"):
        shuffled(5)
