"""Counts in messages: one of something is written in the singular."""

import pytest

from unmask.counted import counted


@pytest.mark.parametrize(
    ("what", "one"),
    [
        ("texts longer than 64 tokens, cut", "1 text longer than 64 tokens, cut"),
        ("epochs of 300 steps", "1 epoch of 300 steps"),
        ("epochs are too few to train all groups", "1 epoch is too few to train all groups"),
        ("examples with the same text as a training example", "1 example with the same text as a training example"),
        ("lines with bytes that are not utf-8, replaced", "1 line with bytes that are not utf-8, replaced"),
        ("train triples that repeat another line, left out", "1 train triple that repeats another line, left out"),
        ("entities without a name: texts are names", "1 entity without a name: texts are names"),
        ("tensors of the head 'x' have random weights", "1 tensor of the head 'x' has random weights"),
        ("answers are not there, and were looked for: 'a'", "1 answer is not there, and was looked for: 'a'"),
        ("words without a token of their own", "1 word without a token of its own"),
        ("written texts are cut after 3 tokens: set most=6", "1 written text is cut after 3 tokens: set most=6"),
        ("Chinese documents with every character", "1 Chinese document with every character"),
        ("classes without an example", "1 class without an example"),
        ("matches that are passages", "1 match that is passages"),
        ("blank line left out (line 3)", "1 blank line left out (line 3)"),
    ],
)
def test_one_is_singular_and_more_are_plural(what, one):
    assert counted(1, what) == one
    assert counted(2_000, what) == f"2,000 {what}"


def test_a_part_of_an_epoch_has_its_fraction():
    assert counted(0.5, "epochs") == "0.5 epochs"
    assert counted(1.0, "epochs") == "1 epoch"
