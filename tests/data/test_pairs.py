"""ALBERT's sentence order and StructBERT's three answers, read back from the rendered pairs by loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

from tests.data.made import FIRST, by_document, random_texts, texts_of
from tests.data.test_arrange import BERT, dice, pairs_of, places
from unmask import recipes
from unmask.data import NextSentence, SentenceOrder, ThreeWay
from unmask.data.pairs import CUT, DRAWN, FOLLOWS, READ, SWAPPED, Walk
from unmask.errors import UserError
from unmask.predict import Label
from unmask.system import SENTENCE, cost, objectives

ROOM = 61  # of 64 tokens, without [CLS] and two [SEP]
LONG = 10_000  # a row that nothing is cut from


def unbroken(text: list[int], where: dict) -> bool:
    return text == list(range(text[0], text[0] + len(text))) and len({where[token][0] for token in text}) == 1


def test_sentence_order_has_neighbours_in_order_or_swapped():
    texts = random_texts(40, 12, 15)
    where = places(texts)
    found = pairs_of(texts, SentenceOrder(short=0.0), LONG)
    assert {label for *_, label in found} == {0, 1}
    for a, b, label in found:
        assert unbroken(a, where)
        assert unbroken(b, where)
        first, second = (a, b) if label == 0 else (b, a)
        assert second[0] == first[-1] + 1
        assert where[first[-1]][0] == where[second[0]][0]
        for text in (a, b):  # whole sentences
            document = by_document(texts)[where[text[0]][0]]
            assert text[0] in [sentence[0] for sentence in document]
            assert text[-1] in [sentence[-1] for sentence in document]


def test_three_way_pairs_follow_go_before_or_come_from_another_document():
    texts = random_texts(60, 12, 15, seed=3)
    where = places(texts)
    found = pairs_of(texts, ThreeWay(short=0.0), LONG)
    assert {label for *_, label in found} == {0, 1, 2}
    for a, b, label in found:
        assert unbroken(a, where)
        assert unbroken(b, where)
        if label == 0:
            assert b[0] == a[-1] + 1
        if label == 1:
            assert a[0] == b[-1] + 1
        assert (where[a[0]][0] == where[b[0]][0]) == (label != 2)


@pytest.mark.parametrize(
    "arrange, shares",
    [
        (SentenceOrder(), (0.5, 0.5)),
        (SentenceOrder(swapped=0.2), (0.8, 0.2)),
        (ThreeWay(), (1 / 3, 1 / 3, 1 / 3)),
        (ThreeWay(previous=0.5, random=0.1), (0.4, 0.5, 0.1)),
    ],
)
def test_answers_come_by_their_shares(arrange, shares):
    texts = texts_of([[2] * 800 for _ in range(20)])
    labels = arrange.runs(texts, BERT, 32, dice()).label
    counts, expected = np.bincount(labels, minlength=len(shares)), np.array(shares) * len(labels)
    assert len(labels) > 1000
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, len(shares) - 1)
    assert arrange.classes == len(arrange.answers) == len(shares)


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.0), (0.34, 0.33, 0.33), (0.0, 0.0, 1.0)])
@pytest.mark.parametrize("short", [0.0, 0.5])
def test_every_sentence_is_used_once_and_only_a_last_one_may_be_left_over(shares, short):
    texts = random_texts(40, 9, 12, seed=5)
    covered = np.zeros(len(texts.ids), int)
    for a0, a1, b0, b1, how in Walk(texts, shares, short, lonely=False).pairs(ROOM, dice(), Counter()):
        assert a1 > a0
        assert b1 > b0
        covered[a0:a1] += 1
        if how != DRAWN:
            assert b0 == a1
            covered[b0:b1] += 1
    assert covered.max() == 1
    for document in by_document(texts):
        used = [bool(covered[sentence[0] - FIRST]) for sentence in document]
        left = used.index(False) if False in used else len(used)
        if len(document) == 1:
            assert left == 0
        elif shares[DRAWN]:
            assert left >= len(document) - 1
        else:
            assert left == len(document)


def test_a_pair_is_as_many_sentences_as_reach_the_target_and_never_leaves_one_alone():
    texts = random_texts(40, 12, 9, seed=1)
    documents, where = by_document(texts), places(texts)
    for a0, a1, b0, b1, how in Walk(texts, (0.5, 0.5, 0.0), 0.0, lonely=False).pairs(ROOM, dice(), Counter()):
        assert how in (FOLLOWS, SWAPPED)
        d, first = where[a0 + FIRST]
        last = where[b1 - 1 + FIRST][1]
        sizes = [len(sentence) for sentence in documents[d]]
        chunk = first + 1
        while chunk < len(sizes) and sum(sizes[first : chunk + 1]) < ROOM:
            chunk += 1
        if chunk >= len(sizes) - 2:  # one would be left over: it comes along
            assert last == len(sizes) - 1
        else:
            assert last == chunk
        assert first < where[b0 + FIRST][1] <= last
        assert a1 == b0


def test_documents_of_one_sentence_are_skipped_and_counted():
    texts = texts_of([[4], [3, 3, 3], [5], [2, 2], [9]])
    for arrange in (SentenceOrder(), ThreeWay()):
        runs = arrange.runs(texts, BERT, 64, dice())
        assert runs.notes["documents of one sentence, skipped by the sentence task"] == 3
        where = places(texts)
        first = {where[a[0]][0] for a, _, label in pairs_of(texts, arrange, 64) if label != 2}
        assert first <= {1, 3}
    assert not NextSentence().runs(texts, BERT, 64, dice()).notes  # there a text from elsewhere is the second


@pytest.mark.parametrize("arrange", [SentenceOrder(), ThreeWay()])
def test_where_no_document_has_two_sentences_the_task_says_what_to_do(arrange):
    with pytest.raises(UserError, match="no document has two sentences.*set arrange=Blocks"):
        arrange.runs(texts_of([[4], [5], [9]]), BERT, 32, dice())


def test_pairs_are_cut_to_the_row_from_the_longer_text_and_keep_their_answer():
    texts = texts_of([[40, 40, 10, 80, 3, 90] for _ in range(30)])
    where = places(texts)
    for arrange in (SentenceOrder(), ThreeWay()):
        runs = arrange.runs(texts, BERT, 32, dice())
        assert 0 < runs.notes[CUT] < runs.notes[READ]
        kept = sum(len(a) + len(b) for a, b, _ in pairs_of(texts, arrange, 32))
        assert runs.notes[READ] - runs.notes[CUT] == kept
        for a, b, label in pairs_of(texts, arrange, 32):
            assert len(a) + len(b) <= 29
            assert unbroken(a, where)
            assert unbroken(b, where)
            if label == 0:
                assert a[-1] < b[0]
            if label == 1:
                assert b[-1] < a[0]
            assert (where[a[0]][0] == where[b[0]][0]) == (label != 2)
            assert abs(len(a) - len(b)) <= 1 or min(len(a), len(b)) in (3, 10)


def test_one_document_is_enough_unless_texts_are_drawn_from_elsewhere():
    one = texts_of([[3, 4, 5, 6, 7]])
    assert set(SentenceOrder().runs(one, BERT, 32, dice()).label.tolist()) <= {0, 1}
    assert 2 not in ThreeWay(random=0.0, previous=0.5).runs(one, BERT, 32, dice()).label
    with pytest.raises(UserError, match="need two documents or more"):
        ThreeWay().runs(one, BERT, 32, dice())


@pytest.mark.parametrize("sentences", [[3, 4, 5], [30, 4], [40, 40, 40], [3] * 20])
def test_no_text_comes_from_elsewhere_where_there_is_one_document(sentences):
    for seed in range(5):
        found = pairs_of(texts_of([sentences]), NextSentence(random=0.0, short=0.3), 24, seed=seed)
        assert {label for *_, label in found} == {0}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: SentenceOrder(swapped=50), r"arrange.swapped must be in \[0, 1\], got 50"),
        (lambda: ThreeWay(previous=0.7, random=0.7), "arrange.previous \\+ arrange.random must be at most 1, got 1.4"),
        (lambda: ThreeWay(short=-1), r"arrange.short must be in \[0, 1\]"),
    ],
)
def test_impossible_shares_are_a_mistake(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize("name", recipes.names())
def test_one_setting_switches_the_sentence_task_of_every_recipe(name):
    for setting, classes in (
        ("SentenceOrder", 2),
        ("ThreeWay", 3),
        ("NextSentence", 2),
        ("Blocks", 0),
        ("FullRows", 0),
    ):
        recipe = recipes.get(name, size="tiny", settings=[f"arrange={setting}"])
        head = objectives(recipe).get(SENTENCE)
        assert head == (Label(classes=classes) if classes else None)
        assert type(recipe.arrange).__name__ == setting
        assert cost(recipe, 200)["parameters"] > 0
        texts = texts_of([[5, 5, 5], [6, 6, 6], [7, 7, 7]])
        assert len(recipe.arrange.runs(texts, recipe.layout, 32, dice()).label)


@pytest.mark.parametrize("name", recipes.names())
def test_static_masking_is_one_setting_of_every_masked_recipe(name):
    if not hasattr(recipes.get(name).hide, "copies"):
        with pytest.raises(UserError, match="unknown setting 'hide.copies'"):
            recipes.get(name, settings=["hide.copies=10"])
        return
    recipe = recipes.get(name, size="tiny", settings=["hide.copies=10"])
    assert [recipe.all_tracks(stage)["main"].hide.copies for stage in recipe.schedule] == [10] * len(recipe.schedule)
    assert recipe.hide.copies == 10
