"""Where words and sentences begin, in English and Chinese."""

from __future__ import annotations

import sys

import pytest
import rjieba

from unmask.errors import Mistake
from unmask.text import boundaries
from unmask.text.boundaries import HAN, LETTER, NEWLINE, PUNCTUATION, SPACE, classes_of, codes_of


def parts(text: str) -> list[str]:
    starts = [*boundaries.sentence_starts(text), len(text)]
    return [text[a:b].strip() for a, b in zip(starts, starts[1:], strict=False) if text[a:b].strip()]


def words(text: str, way: str) -> list[str]:
    begins = boundaries.word_starts(text, classes_of(codes_of(text)), way)
    starts = [i for i, begin in enumerate(begins) if begin]
    return [text[a:b].rstrip(" ") for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["One sentence."],
        ["The doctor came.", "He left."],
        ["Really?!", "Yes!", "3 patients were seen."],
        ["Mr. Brown met Dr. J. Smith in St. Louis.", "They spoke."],
        ["See Fig. 2 for details, e.g. The left panel.", "It is clear."],
        ['He said "Stop."', '"Why?"', "(Nobody knew.)", "Fine."],
        ["It costs 3.50 today.", "Élise agrees."],
        ["It was I.", "You know it."],
    ],
)
def test_english_sentences_end_at_full_stops_that_end_them(sentences):
    assert parts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["今天下雨。", "我没出门！", "你呢？"],
        ["他说：“走吧！”", "大家都走了。"],
        ["原因很多；", "我不知道……", "算了。"],
        ["（见图。）", "结论如下。"],
    ],
)
def test_chinese_sentences_end_at_their_marks_and_keep_closing_quotes(sentences):
    assert parts("".join(sentences)) == sentences


@pytest.mark.parametrize("gap", [" ", "　"])
def test_a_space_after_a_chinese_full_stop_does_not_join_two_sentences(gap):
    assert parts(f"今天下雨。{gap}我没出门。") == ["今天下雨。", "我没出门。"]


def test_a_lower_case_word_after_a_full_stop_begins_no_sentence():
    assert parts("He works at example. com and at home.") == ["He works at example. com and at home."]


def test_every_line_begins_a_sentence():
    assert parts("a title\nthe text\n\nmore") == ["a title", "the text", "more"]


def test_starts_are_sorted_and_distinct_and_begin_at_zero():
    starts = boundaries.sentence_starts("One. Two.\nThree。四！\n")
    assert starts[0] == 0
    assert starts == sorted(set(starts))


def test_spaces_parts_letters_marks_and_han():
    assert words("Dr. O'Neil's 2nd 北京 café—naïve😀!", "spaces") == [
        "Dr", ".", "O", "'", "Neil", "'", "s", "2nd", "北", "京", "café", "—", "naïve", "😀", "!",
    ]  # fmt: skip


def test_rjieba_gives_the_segmenters_words():
    text = "小明硕士毕业于中国科学院计算所，后在日本京都大学深造 PhD 2年😀"
    assert words(text, "rjieba") == [word for word in rjieba.cut(text) if word.strip()]


def test_auto_segments_only_lines_with_han():
    assert words("left-over 3.14", "auto") == ["left", "-", "over", "3", ".", "14"]
    text = "北京大学left\n"
    assert words(text + "a-b", "auto") == [*rjieba.cut(text), "a", "-", "b"]


def test_none_makes_every_character_that_is_no_space_a_beginning():
    assert words("ab 北", "none") == ["a", "b", "北"]


def test_characters_have_classes():
    text = "a1é ́\n 　，$北𠀀😀㐀豈"
    kinds = [LETTER, LETTER, LETTER, SPACE, LETTER, NEWLINE, SPACE, SPACE]
    kinds += [PUNCTUATION, PUNCTUATION, HAN, HAN, PUNCTUATION, HAN, HAN]
    assert classes_of(codes_of(text)).tolist() == kinds


def test_an_unknown_way_names_the_nearest():
    with pytest.raises(Mistake, match="did you mean spaces"):
        boundaries.words_named("space")
    assert boundaries.words_named("auto") == "auto"


def test_without_rjieba_chinese_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    boundaries.segmenter.cache_clear()
    try:
        assert words("only english", "auto") == ["only", "english"]
        with pytest.raises(Mistake, match=r"unmask\[zh\].*--words spaces"):
            words("北京", "auto")
    finally:
        boundaries.segmenter.cache_clear()
