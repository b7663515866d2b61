"""Masking as in BERT's paper: 80% [MASK], 10% random, 10% kept; and the next token as in GPT's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask.batch import Vocabulary
from unmask.data.given import Text, batch_of, rows_of
from unmask.errors import Mistake
from unmask.hide import Mask, Next, Nothing, Tokens, Words
from unmask.text import Characters, train


def fates(hide: Mask, rows: int = 400) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch = random_batch(rows=rows, length=128)
    after = hide.apply(batch, vocabulary(), 0)
    used = after.targets.weight > 0
    before, now = after.targets.ids[used], after.ids.flatten()[after.targets.where[used]]
    assert torch.equal(before, batch.ids.flatten()[after.targets.where[used]])
    return now == vocabulary().mask, now == before, now


def test_of_the_chosen_tokens_80_percent_are_masked_10_drawn_and_10_kept():
    masked, kept, now = fates(Mask())
    count = len(masked)
    drawn = ~masked & ~kept
    for share, wanted in ((masked, 0.8), (kept, 0.1 + 0.1 / 195), (drawn, 0.1 * 194 / 195)):
        assert abs(float(share.float().mean()) - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5


def test_other_shares_are_kept_too():
    masked, kept, _ = fates(Mask(mask=1.0, random=0.0), 20)
    assert masked.all()
    masked, kept, _ = fates(Mask(mask=0.0, random=0.0), 20)
    assert kept.all()


def test_drawn_tokens_are_all_ordinary_tokens_equally_often():
    masked, _, now = fates(Mask(mask=0.0, random=1.0, budget=0.5))
    counts = torch.bincount(now, minlength=200).float()
    assert (counts[:5] == 0).all()
    expected = len(now) / 195
    assert ((counts[5:] - expected) ** 2 / expected).sum() < 265  # chi-square of 194 degrees, 99.95%


def test_drawn_tokens_step_over_special_ids_wherever_they_lie():
    words = Vocabulary(size=10, pad=0, special=(0, 3, 4, 9), mask=9)
    batch = random_batch(rows=200, length=32, size=10)
    after = Mask(mask=0.0, random=1.0, budget=1.0).apply(batch, words, 0)
    drawn = after.ids.flatten()[after.targets.where[after.targets.weight > 0]]
    assert set(drawn.tolist()) == {1, 2, 5, 6, 7, 8}


def test_all_tokens_of_a_word_share_their_fate():
    batch = random_batch(rows=100, length=64)
    after = Mask(units=Words(), budget=0.3).apply(batch, vocabulary(), 0)
    masked = after.ids == 4
    for row in range(100):
        for word in range(int(batch.word[row].max()) + 1):
            mine = batch.word[row] == word
            assert masked[row, mine].all() or not masked[row, mine].any()


def test_only_chosen_tokens_change_and_the_batch_given_stays_as_it_was():
    batch = random_batch(rows=8, length=64, examples=2)
    before = batch.ids.clone()
    after = Mask().apply(batch, vocabulary(), 0)
    assert torch.equal(batch.ids, before)
    allowed = torch.zeros(8 * 64, dtype=torch.bool)
    allowed[after.targets.where[after.targets.weight > 0]] = True
    assert not ((after.ids != before).flatten() & ~allowed).any()


def test_static_masking_comes_round_after_its_copies():
    batch = random_batch(rows=4, length=64)
    hide = Mask(copies=3)
    ids = [hide.apply(batch.replace(visit=batch.visit + v), vocabulary(), 0).ids for v in range(6)]
    assert all(torch.equal(ids[v], ids[v + 3]) for v in range(3))
    assert not torch.equal(ids[0], ids[1])


def test_unknown_tokens_are_hidden_with_their_word_and_never_drawn():
    tokenizer = train(Characters(vocab=9), ["aaaa bbb cc"])
    rows, _ = rows_of([Text("a龘b龘c龘a龘b龘")], [0], tokenizer, "[CLS] a [SEP]", 32, "spaces")
    batch = batch_of(rows, np.array([0]))
    for units in (Tokens(), Words()):
        after = Mask(units=units, budget=1.0).apply(batch, tokenizer.vocabulary, 0)
        unknown = tokenizer.role("unk")
        assert unknown in after.targets.ids[after.targets.weight > 0].tolist()
        swapped = after.ids != batch.ids
        assert unknown not in after.ids[swapped].tolist()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"budget": 15}, r"hide.budget must be in \(0, 1\], got 15: write 0.15 for 15%"),
        ({"budget": 0}, "hide.budget"),
        ({"mask": 80}, r"hide.mask must be in \[0, 1\], got 80"),
        ({"random": -0.1}, "hide.random"),
        ({"mask": 0.8, "random": 0.3}, "at most 1, got 1.1"),
        ({"copies": 0}, "hide.copies must be none or 1 or more, got 0"),
    ],
)
def test_impossible_shares_are_errors(options, message):
    with pytest.raises(Mistake, match=message):
        Mask(**options)


def test_next_predicts_every_token_of_an_example_but_its_first():
    batch = random_batch(rows=3, length=32, examples=3)
    after = Next().apply(batch, vocabulary(), 0)
    assert torch.equal(after.ids, batch.ids)
    expected = []
    for row in range(3):
        for place in range(31):
            same = batch.example[row, place] == batch.example[row, place + 1]
            if same and batch.example[row, place] >= 0:
                flat = row * 32 + place
                expected.append((flat, int(batch.ids[row, place + 1]), flat + 1, flat + 1))
    t, used = after.targets, after.targets.weight > 0
    found = list(zip(*(x[used].tolist() for x in (t.where, t.ids, t.start, t.end)), strict=True))
    assert found == expected


def test_only_mask_needs_a_mask_token():
    assert Mask().needs_mask
    assert not Mask(mask=0.0).needs_mask
    assert not Next().needs_mask
    assert not Nothing().needs_mask


def test_nothing_changes_nothing():
    batch = random_batch(rows=2, length=16)
    assert Nothing().apply(batch, vocabulary(), 0) is batch


def test_units_are_minus_one_exactly_on_special_tokens_and_padding():
    batch = random_batch(rows=4, length=32, examples=2)
    for units in (Tokens().label(batch, 0, batch.visit), Words().label(batch, 0, batch.visit)):
        assert torch.equal(units < 0, (batch.ids < 5) | ~batch.real)
