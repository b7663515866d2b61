"""Layouts of one text and of two."""

import pytest

from unmask.errors import UserError
from unmask.text import layout

BERT, ROBERTA, GPT, XLNET = "[CLS] a [SEP] b [SEP]", "[CLS] a [SEP] [SEP] b [SEP]", "a [SEP]", "a [SEP] b [SEP] [CLS]"
FIRST_GPT = "[START] a [DELIMITER] b [EXTRACT]"


def names(text: str, texts: int) -> str:
    return " ".join(item.name for item in layout.items(text, texts))


@pytest.mark.parametrize(
    "text, one, two",
    [
        (BERT, "cls a sep", "cls a sep b sep"),
        (ROBERTA, "cls a sep", "cls a sep sep b sep"),
        (XLNET, "a sep cls", "a sep b sep cls"),
        ("a [MASK] b", "a mask", "a mask b"),
        (FIRST_GPT, "start a extract", "start a delimiter b extract"),
    ],
)
def test_one_text_leaves_out_the_second_and_what_belongs_to_it(text, one, two):
    assert names(text, 1) == one
    assert names(text, 2) == two
    assert layout.overhead(text, 1) == len(one.split()) - 1
    assert layout.overhead(text, 2) == len(two.split()) - 2


def test_the_second_text_and_what_follows_it_are_segment_one():
    assert [item.segment for item in layout.items(BERT, 2)] == [0, 0, 0, 1, 1]
    assert [item.segment for item in layout.items(BERT, 1)] == [0, 0, 0]


def test_a_summary_after_the_texts_belongs_to_neither():
    assert [item.segment for item in layout.items(XLNET, 2)] == [0, 0, 1, 1, 2]
    assert [item.segment for item in layout.items(XLNET, 1)] == [0, 0, 2]


def test_the_summary_is_cls_wherever_it_stands_and_otherwise_the_last_item():
    assert layout.summary(BERT, 1) == layout.summary(BERT, 2) == 0
    assert layout.summary(XLNET, 1) == 2
    assert layout.summary(XLNET, 2) == 4
    assert layout.summary(GPT, 1) == 1
    assert layout.summary(FIRST_GPT, 1) == 2
    assert layout.summary(FIRST_GPT, 2) == 4


@pytest.mark.parametrize(
    "text, texts, message",
    [
        ("[CLS] a [END]", 1, r"may hold a, b, \[CLS\], \[SEP\], \[MASK\], .*; got '\[END\]'"),
        ("[CLS]", 1, "must have a once"),
        ("", 1, "must have a once"),
        ("a a", 1, "must have a once"),
        ("a b b", 2, "b at most once"),
        (GPT, 2, "no place for a second text"),
    ],
)
def test_a_wrong_layout_is_an_error(text, texts, message):
    with pytest.raises(UserError, match=message):
        layout.items(text, texts)
