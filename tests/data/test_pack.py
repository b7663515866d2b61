"""Rows hold every example once, nothing overlaps, and their numbers are dense."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.data.made import CLS, SEP, SPECIALS, examples_of, random_texts, with_levels
from unmask.data import Blocks, FullRows, NextSentence
from unmask.data.pack import MOST_EXAMPLES, assign, pack

BERT = "[CLS] a [SEP] b [SEP]"
CASES = {
    "pairs": (NextSentence(), BERT),
    "documents": (Blocks(cross=False), "[CLS] a [SEP]"),
    "blocks": (Blocks(), "[CLS] a [SEP]"),
    "xlnet": (NextSentence(), "a [SEP] b [SEP] [CLS]"),
    "stream": (FullRows(), "a [SEP]"),
}
LENGTH, PAD = 64, 0


@pytest.fixture(params=CASES, scope="module")
def packed(request):
    arrange, layout = CASES[request.param]
    texts = random_texts(80, 12, 14)
    runs = arrange.runs(texts, layout, LENGTH, np.random.default_rng(0))
    return texts, runs, pack(texts, runs, SPECIALS, PAD, LENGTH, arrange.packed), layout


def laid_out(rows, row: int) -> list[list[int]]:
    """The examples of a row, as the columns say."""
    count = int(rows.example[row].max()) + 1
    return [rows.ids[row][rows.example[row] == number].tolist() for number in range(count)]


def test_every_example_appears_exactly_once(packed):
    texts, runs, rows, _ = packed
    found = Counter(tuple(example) for row in range(len(rows)) for example in laid_out(rows, row))
    assert found == Counter(tuple(example) for example in examples_of(texts, runs))
    assert rows.ids.shape == (len(rows), LENGTH)


def test_examples_stand_side_by_side_and_padding_at_the_end(packed):
    *_, rows, _ = packed
    for row in range(len(rows)):
        example = rows.example[row].tolist()
        real = [number for number in example if number >= 0]
        assert example == real + [-1] * (LENGTH - len(real))
        assert real == sorted(real)
        assert sorted(set(real)) == list(range(max(real) + 1))
        assert (rows.ids[row, len(real) :] == PAD).all()


def test_positions_count_from_zero_in_every_example(packed):
    *_, rows, _ = packed
    for row in range(len(rows)):
        for number in range(int(rows.example[row].max()) + 1):
            mine = rows.position[row][rows.example[row] == number]
            assert mine.tolist() == list(range(len(mine)))


def test_words_and_sentences_are_numbered_densely_and_specials_have_none(packed):
    texts, _, rows, _ = packed
    begins_sentence = set((texts.sentence[:-1] + 1000).tolist())
    begins_word = {token + 1000 for token in np.flatnonzero(texts.columns["word"].values == 1)}
    for begins, name in ((begins_word, "word"), (begins_sentence, "sentence")):
        for row in range(len(rows)):
            number, expected = -1, []
            for place, token in enumerate(rows.ids[row].tolist()):
                if token < 1000:
                    expected.append(-1)
                    continue
                fresh = place == 0 or rows.ids[row, place - 1] != token - 1  # the text does not run on
                number += token in begins or fresh
                expected.append(number)
            assert rows.columns[name].values[row].tolist() == expected


def test_the_summary_is_cls_or_the_last_token_of_each_example(packed):
    *_, rows, layout = packed
    for row in range(len(rows)):
        count = int(rows.example[row].max()) + 1
        assert rows.counted[row].tolist() == [1.0] * count + [0.0] * (rows.counted.shape[1] - count)
        for number in range(count):
            mine = np.flatnonzero(rows.example[row] == number)
            place = rows.summary[row, number]
            assert place == (mine[0] if layout.startswith("[CLS]") else mine[-1])
            if "[CLS]" in layout:
                assert rows.ids[row, place] == CLS


def test_labels_stay_with_their_examples(packed):
    texts, runs, rows, _ = packed
    wanted = {tuple(e): label for e, label in zip(examples_of(texts, runs), runs.label.tolist(), strict=True)}
    for row in range(len(rows)):
        for number, example in enumerate(laid_out(rows, row)):
            assert rows.label[row, number] == wanted[tuple(example)]


def test_segments_are_one_behind_the_first_separator_of_a_pair(packed):
    *_, rows, layout = packed
    for row in range(len(rows)):
        for number, example in enumerate(laid_out(rows, row)):
            segment = rows.segment[row][rows.example[row] == number].tolist()
            first = example.index(SEP) + 1 if "b" in layout.split() else len(example)
            own = [2] if layout.endswith("[CLS]") else []
            assert segment == [0] * first + [1] * (len(example) - first - len(own)) + own


def test_little_is_left_as_padding():
    texts = random_texts(300, 12, 14)
    runs = NextSentence().runs(texts, BERT, 128, np.random.default_rng(0))
    rows = pack(texts, runs, SPECIALS, PAD, 128, True)
    assert (rows.example < 0).mean() < 0.02
    least = -(-int(runs.length.sum()) // 128)
    assert len(rows) <= 1.02 * least + 1


def test_assignment_fits_its_rows_and_is_no_worse_than_first_fit_decreasing():
    for seed in range(20):
        sizes = np.random.default_rng(seed).integers(1, 65, 200)
        rows, slots = assign(sizes, 64, MOST_EXAMPLES)
        room: list[list[int]] = []
        for size in sorted(sizes.tolist(), reverse=True):
            fits = next((r for r in room if sum(r) + size <= 64 and len(r) < MOST_EXAMPLES), None)
            if fits is None:
                room.append([size])
            else:
                fits.append(size)
        assert np.bincount(rows, weights=sizes).max() <= 64
        assert rows.max() + 1 <= len(room) * 1.03 + 1
        for row in range(rows.max() + 1):
            assert sorted(slots[rows == row].tolist()) == list(range((rows == row).sum()))
            assert (rows == row).sum() <= MOST_EXAMPLES


def test_no_row_holds_more_examples_than_there_are_places():
    rows, _ = assign(np.ones(100, np.int64), 64, MOST_EXAMPLES)
    assert np.bincount(rows).max() == MOST_EXAMPLES


def test_unpacked_examples_keep_their_order_one_per_row():
    texts = random_texts(30, 6, 9)
    runs = FullRows().runs(texts, "a [SEP]", 16, np.random.default_rng(0))
    rows = pack(texts, runs, SPECIALS, PAD, 16, False)
    assert [laid_out(rows, row)[0] for row in range(len(rows))] == examples_of(texts, runs)


@pytest.mark.parametrize("case", CASES)
def test_phrases_and_entities_are_numbered_by_row_and_a_cut_one_is_a_unit_of_its_own(case):
    arrange, layout = CASES[case]
    texts = with_levels(random_texts(40, 8, 14))
    runs = arrange.runs(texts, layout, 32, np.random.default_rng(0))
    rows = pack(texts, runs, SPECIALS, PAD, 32, arrange.packed)
    cut = 0
    for level in ("phrase", "entity"):
        marks, column = texts.columns[level].values, rows.columns[level].values
        assert column.shape == rows.ids.shape
        for row in range(len(rows)):
            number, expected = -1, []
            for place, token in enumerate(rows.ids[row].tolist()):
                mark = marks[token - 1000] if token >= 1000 else 0
                if not mark:
                    expected.append(-1)
                    continue
                goes_on = place > 0 and rows.ids[row, place - 1] == token - 1  # the text runs on
                cut += mark == 2 and not goes_on
                number += mark == 1 or not goes_on
                expected.append(number)
            assert column[row].tolist() == expected
    assert cut or case == "documents"


def test_rows_of_texts_without_levels_have_none(packed):
    *_, rows, _ = packed
    assert rows.columns.keys() == {"word", "sentence"}
