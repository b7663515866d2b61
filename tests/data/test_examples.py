"""FromTask examples become rows one by one, cut at the end, and come shuffled anew at every visit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unmask.data.examples import Examples, Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.text import Characters, train

BERT, XLNET = "[CLS] a [SEP] b [SEP]", "a [SEP] b [SEP] [CLS]"
TOKENIZER = train(Characters(vocab=40), ["abcdefghijklmnopqrstuvwxyz"])
CLS, SEP, PAD = (TOKENIZER.role(name) for name in ("cls", "sep", "pad"))


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text)


def real(rows, row: int) -> list[int]:
    return rows.ids[row][rows.example[row] >= 0].tolist()


def test_single_texts_and_pairs_are_laid_out_as_their_layout_says():
    rows, notes = rows_of([Text("abc"), Text("d")], [1, 0], TOKENIZER, BERT, 32)
    assert real(rows, 0) == [CLS, *ids("abc"), SEP]
    assert real(rows, 1) == [CLS, *ids("d"), SEP]
    assert rows.label[:, 0].tolist() == [1, 0]
    rows, _ = rows_of([Text("abc", "xy"), Text("d", "z")], [0, 1], TOKENIZER, BERT, 32)
    assert real(rows, 0) == [CLS, *ids("abc"), SEP, *ids("xy"), SEP]
    assert rows.segment[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert not notes


def test_rows_are_no_longer_than_the_longest_example():
    rows, _ = rows_of([Text("abc"), Text("d")], [0, 0], TOKENIZER, BERT, 512)
    assert rows.ids.shape == (2, 5)
    assert rows.ids[1].tolist() == [CLS, *ids("d"), SEP, PAD, PAD]


def test_long_texts_are_cut_at_their_end_and_counted():
    rows, notes = rows_of([Text("abcdefgh"), Text("ab")], [0, 0], TOKENIZER, BERT, 6)
    assert real(rows, 0) == [CLS, *ids("abcd"), SEP]
    assert notes == {"texts longer than 6 tokens, cut": 1}


def test_long_pairs_are_cut_at_the_end_of_the_longer_text():
    rows, _ = rows_of([Text("abcdefgh", "xy")], [0], TOKENIZER, BERT, 9)
    assert real(rows, 0) == [CLS, *ids("abcd"), SEP, *ids("xy"), SEP]


def test_the_summary_is_cls_wherever_the_layout_puts_it():
    for layout in (BERT, XLNET):
        rows, _ = rows_of([Text("abc", "x"), Text("a", "yyyy")], [0, 0], TOKENIZER, layout, 32)
        batch = batch_of(rows, np.array([1, 0, 1]))
        assert (batch.ids.flatten()[batch.summary] == CLS).all()
        assert batch.counted.tolist() == [1, 1, 1]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_named_by_its_number(text):
    with pytest.raises(UserError, match="text number 2 of 3 is empty"):
        rows_of([Text("a"), Text(text), Text("b")], [0, 0, 0], TOKENIZER, BERT, 32)


def test_an_empty_second_text_is_allowed_among_pairs():
    rows, _ = rows_of([Text("ab", "c"), Text("ab")], [0, 0], TOKENIZER, BERT, 32)
    assert real(rows, 1)[: len(ids("ab")) + 2] == [CLS, *ids("ab"), SEP]


def test_a_layout_without_place_for_a_second_text_is_a_mistake():
    with pytest.raises(UserError, match="no place for a second text"):
        rows_of([Text("a", "b")], [0], TOKENIZER, "[CLS] a [SEP]", 32)


def test_rows_too_short_for_any_text_are_a_mistake():
    with pytest.raises(UserError):
        rows_of([Text("abcdef", "abcdef")], [0], TOKENIZER, BERT, 2)


def test_a_batch_is_as_wide_as_its_longest_row_needs_in_steps_of_eight():
    rows, _ = rows_of([Text("a" * n) for n in (3, 7, 30)], [0, 1, 2], TOKENIZER, BERT, 64)
    assert batch_of(rows, np.array([0])).shape == (1, 8)
    assert batch_of(rows, np.array([1, 0])).shape == (2, 16)
    assert batch_of(rows, np.array([0, 2])).shape == (2, 32)
    batch = batch_of(rows, np.array([2, 0]))
    assert batch.label.tolist() == [2, 0]
    assert batch.row.tolist() == [2, 0]
    assert batch.ids.dtype == torch.long


def letters(count: int) -> Examples:
    texts = [Text("abcdefghijklmnopqrstuvwxyz"[i : i + 3]) for i in range(count)]
    return Examples(rows_of(texts, list(range(count)), TOKENIZER, BERT, 16)[0], seed=3)


def test_every_visit_takes_every_example_once_in_another_order():
    source = letters(10)
    visits = [source.batch(10).label.tolist() for _ in range(3)]
    assert all(sorted(visit) == list(range(10)) for visit in visits)
    assert visits[0] != visits[1] != visits[2]


def test_examples_reopen_at_the_very_next_one():
    whole = letters(10)
    for size in (3, 4, 8):
        whole.batch(size)
    again = Examples(whole.rows, 3, whole.state())
    for size in (1, 7, 25):
        one, two = whole.batch(size), again.batch(size)
        assert torch.equal(one.ids, two.ids)
        assert torch.equal(one.label, two.label)
    assert whole.after_stage() == whole.state() == again.state()


def test_batches_may_be_larger_than_the_set():
    labels = letters(4).batch(10).label.tolist()
    assert sorted(labels[:4]) == sorted(labels[4:8]) == [0, 1, 2, 3]


def test_every_row_knows_its_own_visit():
    batch = letters(4).batch(10)
    assert batch.visit.tolist() == [0] * 4 + [1] * 4 + [2] * 2
