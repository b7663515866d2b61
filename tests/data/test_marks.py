"""Marks on characters become columns of tokens, for every kind of tokenizer; long texts become windows."""

from __future__ import annotations

import numpy as np
import pytest

from unmask import text as texts
from unmask.data.examples import OWNER, Laid, Text, rows_of_task
from unmask.data.marks import Mark, Marks
from unmask.data.pack_examples import batch_of
from unmask.text.encode import PLACES

BERT, GPT = "[CLS] a [SEP] b [SEP]", "[START] a [DELIMITER] b [EXTRACT]"
WORDS = ["The", "doctor", "slept", "in", "Zürich", ",", "near", "北", "京", "and", "ﬁnally", "left", "."]
CORPUS = [" ".join(WORDS), "北京 的 医生", "the doctor slept near the river and left"] * 3
KINDS = {
    "wordpiece": texts.WordPiece(vocab=70), "bpe": texts.BPE(vocab=70), "byte-bpe": texts.ByteBPE(vocab=270),
    "word-bpe": texts.WordBPE(vocab=70), "unigram": texts.Unigram(vocab=36), "characters": texts.Characters(vocab=70),
    "whole-words": texts.WholeWords(vocab=70), "bytes": texts.Bytes(),
}  # fmt: skip


@pytest.fixture(scope="module")
def kinds():
    return {name: texts.train(kind, CORPUS) for name, kind in KINDS.items()}


def laid_out(words, between=" "):
    """A text and the mark of each word, with the number of the word as its value."""
    begins = np.cumsum([0, *(len(word) + len(between) for word in words)])[:-1].tolist()
    return between.join(words), [Mark(b, b + len(w), i) for i, (b, w) in enumerate(zip(begins, words, strict=True))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_is_found_at_its_first_token(kind, kinds):
    text, marks = laid_out(WORDS)
    laid = Laid(
        [Text(text)],
        marks=(Marks("place", [marks]), Marks("inside", [marks], on="all"), Marks("last", [marks], on="last")),
    )
    rows, _ = rows_of_task(laid, kinds[kind], GPT if kind == "word-bpe" else BERT, 200)
    first, inside, last = (rows.columns[name].values[0] for name in ("place", "inside", "last"))
    assert first[first >= 0].tolist() == last[last >= 0].tolist() == list(range(len(WORDS)))
    places = rows.columns[PLACES].values[0]
    for number, mark in enumerate(marks):  # by an explicit loop over the tokens
        own = [t for t, (a, b) in enumerate(places.tolist()) if a < mark.end and b > mark.start and b > a]
        assert np.flatnonzero(inside == number).tolist() == own
        assert (np.flatnonzero(first == number)[0], np.flatnonzero(last == number)[0]) == (own[0], own[-1])
        assert text[places[own[0], 0] : places[own[-1], 1]] == WORDS[number]


@pytest.mark.parametrize("kind", KINDS)
def test_places_are_those_of_the_text_that_was_given_also_after_blank_lines(kind, kinds):
    text = "  The doctor\n\n \nslept near Zürich .  \n"
    begin = text.index("Zürich")
    laid = Laid([Text("The", text)], marks=(Marks("word", [[Mark(begin, begin + 6, 7)]], on="all", text="b"),))
    rows, _ = rows_of_task(laid, kinds[kind], GPT if kind == "word-bpe" else BERT, 100)
    chosen = rows.columns[PLACES].values[0][rows.columns["word"].values[0] == 7]
    assert text[chosen[0, 0] : chosen[-1, 1]] == "Zürich"


def test_two_words_in_one_token_leave_the_second_without_a_token():
    tokenizer = texts.train(texts.ByteBPE(vocab=266), ["北京 北京 北京"] * 9)
    text, marks = laid_out(["北", "京"], between="")
    assert len(tokenizer.encode(text)) == 1
    rows, _ = rows_of_task(Laid([Text(text)], marks=(Marks("place", [marks]),)), tokenizer, BERT, 20)
    assert rows.columns["place"].values[0].tolist() == [-1, 0, -1]


def test_windows_hold_every_token_and_know_their_example(kinds):
    tokenizer = kinds["characters"]
    long, short = "doctor slept near the river", "left"
    laid = Laid([Text("The", long), Text("and", short)], [4, 5], answers={"x": np.array([[1.5], [2.5]])}, stride=0.5)
    rows, notes = rows_of_task(laid, tokenizer, BERT, 3 + 3 + 10)
    assert rows.per_example[OWNER].tolist() == [0, 0, 0, 0, 0, 1]
    assert rows.label[:, 0].tolist() == [4] * 5 + [5]
    assert rows.per_example["x"][:, 0].tolist() == [1.5] * 5 + [2.5]
    assert notes == {"texts longer than 16 tokens, read in windows": 1}
    read = [rows.ids[i][rows.segment[i] == 1][:-1] for i in range(6)]
    whole = tokenizer.encode(long)
    starts = [0, 5, 10, 15, len(whole) - 10]
    assert [part.tolist() for part in read[:5]] == [whole[s : s + 10] for s in starts]
    batch = batch_of(rows, np.array([5, 1]))
    assert batch.per_example["x"].flatten().tolist() == [2.5, 1.5]


def test_windows_of_one_example_may_be_read_together(kinds):
    laid = Laid([Text("doctor slept"), Text("left")], [0, 1], stride=1.0, windows="together")
    rows, _ = rows_of_task(laid, kinds["characters"], BERT, 8)
    assert len(rows) == 2
    assert rows.label[:, 0].tolist() == [0, 1]
    assert ((rows.example >= 0).sum(1) > 0).tolist() == [True, True, True, False][:2] + [False, False][:0] + [
        True,
        False,
    ]
