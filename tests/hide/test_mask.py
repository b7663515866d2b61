"""Masking as in BERT's paper: 80% [MASK], 10% random, 10% kept; and the next token as in GPT's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from tests.small import masking, random_batch, shuffled, vocabulary
from unmask.batch import Batch, Vocabulary
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.hide import Keep, Mask, Masked, Next, Nothing, Shuffle, Spans, Tokens, Words, apply_rules
from unmask.text import Characters, train


def fates(hide: Masked, rows: int = 400) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch = random_batch(rows=rows, length=128)
    after = hide.apply(batch, vocabulary(), 0)
    used = after.targets["tokens"].weight > 0
    before, now = after.targets["tokens"].ids[used], after.ids.flatten()[after.targets["tokens"].where[used]]
    assert torch.equal(before, batch.ids.flatten()[after.targets["tokens"].where[used]])
    return now == vocabulary().mask, now == before, now


def test_of_the_chosen_tokens_80_percent_are_masked_10_drawn_and_10_kept():
    masked, kept, now = fates(masking())
    count = len(masked)
    drawn = ~masked & ~kept
    for share, wanted in ((masked, 0.8), (kept, 0.1 + 0.1 / 195), (drawn, 0.1 * 194 / 195)):
        assert abs(float(share.float().mean()) - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5


def test_other_shares_are_kept_too():
    masked, kept, _ = fates(masking(mask=1.0, random=0.0), 20)
    assert masked.all()
    masked, kept, _ = fates(masking(mask=0.0, random=0.0), 20)
    assert kept.all()


def test_drawn_tokens_are_all_ordinary_tokens_equally_often():
    masked, _, now = fates(masking(mask=0.0, random=1.0, budget=0.5))
    counts = torch.bincount(now, minlength=200).float()
    assert (counts[:5] == 0).all()
    expected = len(now) / 195
    assert ((counts[5:] - expected) ** 2 / expected).sum() < 265  # chi-square of 194 degrees, 99.95%


def test_drawn_tokens_step_over_special_ids_wherever_they_lie():
    words = Vocabulary(size=10, pad=0, special=(0, 3, 4, 9), mask=9)
    batch = random_batch(rows=200, length=32, size=10)
    after = masking(mask=0.0, random=1.0, budget=1.0).apply(batch, words, 0)
    drawn = after.ids.flatten()[after.targets["tokens"].where[after.targets["tokens"].weight > 0]]
    assert set(drawn.tolist()) == {1, 2, 5, 6, 7, 8}


def hidden_runs(batch: Batch, after: Batch) -> list[list[int]]:
    """The flat places of hidden tokens that stand side by side in a row, by walking along it."""
    length = batch.shape[1]
    found: list[list[int]] = []
    for place in sorted(after.targets["tokens"].where[after.targets["tokens"].weight > 0].tolist()):
        if found and found[-1][-1] == place - 1 and place % length:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def test_each_token_of_a_word_is_drawn_by_itself():
    batch = random_batch(rows=400, length=64)
    after = masking(units=Words(), budget=0.3).apply(batch, vocabulary(), 0)
    masked, chosen = (after.ids == 4).flatten(), torch.zeros(batch.ids.numel(), dtype=torch.bool)
    chosen[after.targets["tokens"].where[after.targets["tokens"].weight > 0]] = True
    pairs = [run for run in hidden_runs(batch, after) if len(set(batch.columns["word"].flatten()[run].tolist())) == 1]
    pairs = [run for run in pairs if len(run) == 2]
    both = sum(bool(masked[a] and masked[b]) for a, b in pairs)
    for count, share in ((both, 0.64), (sum(int(masked[a]) for a, _ in pairs), 0.8)):
        assert abs(count / len(pairs) - share) < 4 * (share * (1 - share) / len(pairs)) ** 0.5
    assert len(pairs) > 300


@pytest.mark.parametrize("units", [Tokens(), Words(), Spans()])
def test_a_run_of_hidden_tokens_is_masked_replaced_or_kept_as_one_if_spans_are_drawn(units):
    batch, words = random_batch(rows=300, length=128, examples=2), vocabulary()
    after = masking(units=units, budget=0.3, draw="span").apply(batch, words, 0)
    before, now = batch.ids.flatten(), after.ids.flatten()
    labels = units.label(batch, 0, batch.visit).flatten()
    fates, several = Counter(), 0
    for run in hidden_runs(batch, after):
        several += len(set(labels[run].tolist())) > 1  # units that touch are one run
        masked = {int(now[p]) == words.mask for p in run}
        assert len(masked) == 1
        changed = [int(now[p]) != int(before[p]) for p in run]
        fates["mask" if masked == {True} else "random" if any(changed) else "keep"] += 1
        assert masked == {True} or sum(changed) in (0, len(run)) or sum(changed) >= len(run) - 1  # the same by chance
    assert several > 50
    for fate, share in (("mask", 0.8), ("random", 0.1), ("keep", 0.1)):
        error = (share * (1 - share) / fates.total()) ** 0.5
        assert abs(fates[fate] / fates.total() - share) < 4 * error + 0.1 / 195, fate


def test_the_same_choice_is_made_whatever_is_drawn_for_it():
    batch = random_batch(rows=20, length=64)
    by_token, by_run = (masking(units=Spans(), draw=draw).apply(batch, vocabulary(), 0) for draw in ("token", "span"))
    assert torch.equal(by_token.targets["tokens"].where, by_run.targets["tokens"].where)
    assert not torch.equal(by_token.ids, by_run.ids)


def test_random_tokens_of_the_row_come_as_often_as_they_stand_in_it():
    """[CLS], a text of one 5, two 6s, three 7s ..., [UNK] and [SEP] within it, [SEP], padding."""
    text = [i for i in range(5, 11) for _ in range(i - 4)]
    ids = torch.tensor([[2, *text, 1, 3, 3, 0, 0]])
    word = torch.tensor([[-1, *range(len(text) + 2), -1, -1, -1]])
    many = 2000
    zero = torch.zeros(many, ids.shape[1], dtype=torch.long)
    batch = Batch(
        ids=ids.expand(many, -1), columns={"word": word.expand(many, -1), "sentence": zero}, segment=zero, position=zero,
        example=torch.where(ids > 0, 0, -1).expand(many, -1), row=torch.arange(many), visit=zero[:, 0],
        summary=zero[:, 0], label=zero[:, 0], counted=zero[:, 0].float(),
    )  # fmt: skip
    hide = masking(mask=0.0, random=1.0, budget=1.0, random_from="row")
    after = hide.apply(batch, vocabulary(), 0)
    drawn = after.ids.flatten()[after.targets["tokens"].where[after.targets["tokens"].weight > 0]]
    assert len(drawn) == many * len(text)
    counts = torch.bincount(drawn, minlength=11)
    assert int(counts[:5].sum()) == 0
    expected = torch.tensor([i - 4 for i in range(5, 11)]) * many
    assert ((counts[5:] - expected) ** 2 / expected).sum() < 25  # chi-square of 5 degrees, 99.99%
    other = hide.apply(batch.replace(row=batch.row + many), vocabulary(), 0)
    assert not torch.equal(other.ids, after.ids)


def test_a_row_without_ordinary_tokens_draws_none():
    batch = random_batch(rows=1, length=16, padding=0)
    batch = batch.replace(ids=torch.where(batch.columns["word"] >= 0, 1, batch.ids))
    after = masking(budget=1.0, random=1.0, mask=0.0, random_from="row").apply(batch, vocabulary(), 0)
    assert torch.equal(after.ids, batch.ids)
    assert not after.targets["tokens"].weight.any()


def test_only_chosen_tokens_change_and_the_batch_given_stays_as_it_was():
    batch = random_batch(rows=8, length=64, examples=2)
    before = batch.ids.clone()
    after = masking().apply(batch, vocabulary(), 0)
    assert torch.equal(batch.ids, before)
    allowed = torch.zeros(8 * 64, dtype=torch.bool)
    allowed[after.targets["tokens"].where[after.targets["tokens"].weight > 0]] = True
    assert not ((after.ids != before).flatten() & ~allowed).any()


def test_static_masking_comes_round_after_its_copies():
    batch = random_batch(rows=4, length=64)
    hide = masking(copies=3)
    ids = [hide.apply(batch.replace(visit=batch.visit + v), vocabulary(), 0).ids for v in range(6)]
    assert all(torch.equal(ids[v], ids[v + 3]) for v in range(3))
    assert not torch.equal(ids[0], ids[1])


def test_unknown_tokens_are_neither_hidden_nor_drawn_and_their_words_stay_whole():
    tokenizer = train(Characters(vocab=9), ["aaaa bbb cc"])
    rows, _ = rows_of([Text("aжbжcжaжb bab")], [0], tokenizer, "[CLS] a [SEP]", 32, "spaces")
    batch = batch_of(rows, np.array([0]))
    unknown, text = tokenizer.vocabulary.unknown, (batch.columns["word"] >= 0).flatten()
    assert unknown == tokenizer.role("unk")
    assert unknown in tokenizer.vocabulary.special
    known = text & (batch.ids != unknown).flatten()
    last = batch.columns["word"].flatten() == int(
        batch.columns["word"].max()
    )  # the word without unknown tokens, and the space before it
    for units, hideable in ((Tokens(), known), (Words(), last), (Spans(of=Tokens()), known), (Spans(), last)):
        after = masking(units=units, budget=1.0).apply(batch, tokenizer.vocabulary, 0)
        used = after.targets["tokens"].weight > 0
        assert sorted(after.targets["tokens"].where[used].tolist()) == hideable.nonzero()[:, 0].tolist()
        assert unknown not in after.ids[after.ids != batch.ids].tolist()


def test_the_budget_is_a_share_of_the_tokens_that_are_known():
    batch = random_batch(rows=50, length=64, padding=0)
    half = (batch.columns["word"] >= 0) & (torch.arange(64) % 2 == 0)
    batch = batch.replace(ids=torch.where(half, 1, batch.ids))
    known = ((batch.columns["word"] >= 0) & ~half).sum(1)
    for budget in (0.15, 0.5, 1.0):
        found = masking(budget=budget).apply(batch, vocabulary(), 0).targets["tokens"]
        assert torch.equal(found.weight.view(50, -1).sum(1), (known * budget).round().clamp(min=1))
        assert 1 not in found.ids[found.weight > 0].tolist()


def test_a_special_token_that_the_text_itself_holds_is_not_hidden():
    """As "[SEP]" in a text about BERT, or "<s>" in a page of HTML."""
    batch = random_batch(rows=20, length=32, padding=0)
    written = (batch.columns["word"] >= 0) & (torch.arange(32) % 5 == 0)
    batch = batch.replace(ids=torch.where(written, 3, batch.ids))
    for hide in (masking(budget=1.0), masking(budget=1.0, units=Words()), (masking(), shuffled(0.5))):
        after = apply_rules(hide, batch, vocabulary(), 0)
        assert not (
            torch.isin(after.targets["tokens"].ids, torch.arange(5)) & (after.targets["tokens"].weight > 0)
        ).any()
        assert torch.equal(after.ids[written], batch.ids[written])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"budget": 15}, r"hide.budget must be in \(0, 1\], .* is 15: write 0.15 for 15%"),
        ({"budget": 0}, "hide.budget"),
        ({"mask": 80}, r"hide.replace.mask must be in \[0, 1\], got 80"),
        ({"random": -0.1}, "hide.replace.random"),
        ({"mask": 0.8, "random": 0.3}, "at most 1, got 1.1"),
        ({"copies": 0}, "hide.copies must be none or 1 or more, got 0"),
    ],
)
def test_impossible_shares_are_errors(options, message):
    with pytest.raises(UserError, match=message):
        masking(**options)


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
                expected.append((flat, flat + 1, int(batch.ids[row, place + 1]), flat + 1, flat + 1))
    t, used = after.targets["tokens"], after.targets["tokens"].weight > 0
    found = list(zip(*(x[used].tolist() for x in (t.at, t.where, t.ids, t.start, t.end)), strict=True))
    assert found == expected


def test_only_mask_needs_a_mask_token():
    assert [need.fact for need in Mask().needs] == ["mask token"]
    for part in (Mask(mask=0.0, random=1.0), Keep(), Shuffle(), Nothing(), Next()):
        assert "mask token" not in [need.fact for need in part.needs]


def test_nothing_changes_nothing():
    batch = random_batch(rows=2, length=16)
    assert Nothing().apply(batch, vocabulary(), 0) is batch


def test_units_are_minus_one_exactly_on_special_tokens_and_padding():
    batch = random_batch(rows=4, length=32, examples=2)
    for units in (Tokens().label(batch, 0, batch.visit), Words().label(batch, 0, batch.visit)):
        assert torch.equal(units < 0, (batch.ids < 5) | ~batch.real)


@pytest.mark.parametrize("units", [Tokens(), Words()])
def test_a_place_before_the_first_token_does_not_exist_so_the_first_token_is_never_hidden(units):
    rule = Masked(units=units, budget=0.9, at="before")
    batch = random_batch(rows=8, length=24, examples=2)
    first = (batch.position == 0) & (batch.example >= 0)
    columns = {name: torch.where(first, column.roll(-1, 1), column) for name, column in batch.columns.items()}
    batch = batch.replace(ids=torch.where(first, 50, batch.ids), columns=columns)  # a word in place of [CLS]
    after = rule.apply(batch, vocabulary(), 0)
    found = after.targets["tokens"]
    used = found.weight > 0
    assert used.sum() > 50
    assert torch.equal(found.at[used], found.where[used] - 1)
    assert not first.flatten()[found.where[used]].any()
    assert torch.equal(after.ids[first], batch.ids[first])
