"""MASS's window: its length and place, what the decoder reads, and its two limits."""

from __future__ import annotations

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask.errors import UserError
from unmask.hide import Infill, Mask, Next, Window

WORDS = vocabulary()


def rows(count: int = 6, length: int = 60, examples: int = 2, padding: int = 4):
    return random_batch(count, length, examples=examples, padding=padding)


@pytest.mark.parametrize("budget", [0.1, 0.5, 0.9])
def test_one_window_of_each_example_is_hidden_and_only_it_is_in_the_decoder(budget):
    batch, rule = rows(), Window(budget=budget, replace=Mask(mask=1.0, random=0.0))
    after, chosen = rule.apply(batch, WORDS, 0), rule.chosen(batch, WORDS, 0)
    decoder, targets = after.decoder, after.decoder.targets["tokens"]
    assert torch.equal(after.ids, torch.where(chosen, WORDS.mask, batch.ids))
    assert decoder.shape[1] <= round(budget * 60) + 2
    for row in range(6):
        slot = 0
        for number in range(2):
            text = ((batch.example[row] == number) & (batch.columns["word"][row] >= 0)).nonzero()[:, 0].tolist()
            window = [place for place in text if chosen[row, place]]
            assert len(window) == max(1, round(budget * len(text) - 1e-6))
            assert window == list(range(window[0], window[0] + len(window)))
            for (
                place
            ) in window:  # each at its old position; it reads the token before it, and [MASK] at the first place
                read = WORDS.mask if place == window[0] else int(batch.ids[row, place - 1])
                assert int(decoder.ids[row, slot]) == read
                assert int(decoder.position[row, slot]) == int(batch.position[row, place])
                assert int(decoder.example[row, slot]) == number
                at = row * decoder.shape[1] + slot
                assert int(targets.ids[at]) == int(batch.ids[row, place])
                assert int(targets.where[at]) == row * 60 + place
                slot += 1
        assert not decoder.real[row, slot:].any()
        assert float(targets.weight.view(6, -1)[row].sum()) == slot


def test_a_window_of_one_token_is_a_masked_prediction():
    """The decoder reads only [MASK] at the position of the token: nothing but the encoder tells it the text."""
    after = Window(budget=1e-6).apply(rows(), WORDS, 0)
    assert (after.decoder.ids == WORDS.mask).all()
    assert after.decoder.targets["tokens"].weight.sum() == 12


def test_a_window_of_the_whole_text_is_the_prediction_of_the_next_token():
    """The encoder shows no token of the text, and the decoder reads the text from left to right, as GPT does."""
    batch = rows()
    after = Window(budget=1.0, replace=Mask(mask=1.0, random=0.0)).apply(batch, WORDS, 0)
    text = batch.columns["word"] >= 0
    assert (after.ids[text] == WORDS.mask).all()
    given, targets = Next().apply(batch, WORDS, 0).targets["tokens"], after.decoder.targets["tokens"]
    before = {int(w): int(batch.ids.view(-1)[a]) for w, a in zip(given.where, given.at, strict=True)}
    for where, at, weight in zip(targets.where.tolist(), targets.at.tolist(), targets.weight.tolist(), strict=True):
        if weight and text.view(-1)[where - 1]:
            assert int(after.decoder.ids.view(-1)[at]) == before[where]
    assert int(targets.weight.sum()) == int(text.sum())


def test_windows_are_at_the_start_and_at_the_end_as_often_as_asked():
    batch = rows(3000, 22, 1, 0)  # 20 tokens of text
    for rule, shares in ((Window(), (1 / 11, 1 / 11)), (Window(start=0.2, end=0.2), (0.2 + 0.6 / 11, 0.2 + 0.6 / 11))):
        chosen = rule.chosen(batch, WORDS, 0)
        found = float(chosen[:, 1].float().mean()), float(chosen[:, -2].float().mean())
        assert found == pytest.approx(shares, abs=0.03)


def test_a_window_that_would_shorten_the_row_or_has_no_sense_is_refused():
    with pytest.raises(UserError, match="must hide tokens in their places, got Infill: set hide.replace=Mask"):
        Window(replace=Infill())
    with pytest.raises(UserError, match="add up to at most 1, got 0.7 and 0.6"):
        Window(start=0.7, end=0.6)


def test_the_rows_for_one_token_are_those_of_a_window_of_this_token():
    batch = rows(examples=1)
    rule = Window(budget=1e-6)
    usual, chosen = rule.apply(batch, WORDS, 0).decoder, rule.chosen(batch, WORDS, 0)
    place = chosen.long().argmax(1)
    found = rule.rows_for_token(batch, place, WORDS)
    assert found.shape == (6, 1)
    for name in ("ids", "position", "example", "rank"):
        assert torch.equal(getattr(found, name), getattr(usual, name)[:, :1])
    targets = found.targets["tokens"]
    assert torch.equal(targets.where, torch.arange(6) * 60 + place)
    assert torch.equal(targets.ids, batch.ids.flatten()[targets.where])
    assert torch.equal(targets.at, torch.arange(6))
    assert (targets.weight == 1).all()
