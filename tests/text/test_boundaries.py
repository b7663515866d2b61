"""Where words and sentences begin, in English and Chinese."""

from __future__ import annotations

import sys

import pytest
import rjieba

from unmask.errors import UserError
from unmask.text import boundaries
from unmask.text.boundaries import HAN, LETTER, NEWLINE, PUNCTUATION, SPACE, classes_of, codes_of
from unmask.text.sentences import sentence_starts


def parts(text: str) -> list[str]:
    starts = [*sentence_starts(text), len(text)]
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


@pytest.mark.parametrize(
    "sentences",
    [
        ["今天下雨.", "我没出门!", "你呢?", "我也没有;", "算了."],
        ['他说:"走吧!"', "大家都走了."],
        ["真的吗?!", "OK我知道了.", "(见图.)", "结论如下."],
        ["圆周率是3.14.", "它是无理数."],
        ["版本2.0发布了;", "他生于1990.", "后来去了上海."],
        ["我用Python.", "它很快!", "Node.js也很快."],
        ["增长了5%.", "其中一半是出口."],
        ["他走了...", "然后下雨了."],
        ["下雨了。", "真的?", "是的！"],
        ["《红楼梦》.", "它很长."],
    ],
)
@pytest.mark.parametrize("gap", ["", " "])
def test_half_width_marks_end_chinese_sentences(sentences, gap):
    assert parts(gap.join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "约为3.14米.", "请看 https://example.com/a.html?b=中文 这一页.", "请访问百度.com首页", "他住在U.S.政府大楼",
        "J.K.罗琳写的书", "Dr.王和Mr.李", "买了苹果、香蕉etc.等水果", "如下:1.苹果 2.香蕉", "1.苹果", "12.第十二条",
        "空格&nbsp;还有&amp;中文", "www.example.com!中文", "如果名字!=空", "第3.5节", "给a@b.com;中文",
        "专辑《HIGH FIVE!》与单曲", "坐标是.。", "（1741-?）的传奇", "公司（Foo mbH.）青岛分行", "歌曲《好!》很好",
        "The U.S. government pays 3.14 e.g. for example.com; it is so.",
    ],
)  # fmt: skip
def test_half_width_marks_inside_a_sentence_do_not_end_it(sentence):
    assert parts(sentence) == [sentence]


@pytest.mark.parametrize("gap", [" ", "　"])
def test_a_space_after_a_chinese_full_stop_does_not_join_two_sentences(gap):
    assert parts(f"今天下雨。{gap}我没出门。") == ["今天下雨。", "我没出门。"]


def test_a_lower_case_word_after_a_full_stop_begins_no_sentence():
    assert parts("He works at example. com and at home.") == ["He works at example. com and at home."]


def test_every_line_begins_a_sentence():
    assert parts("a title\nthe text\n\nmore") == ["a title", "the text", "more"]


def test_starts_are_sorted_and_distinct_and_begin_at_zero():
    starts = sentence_starts("One. Two.\nThree。四！\n")
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
    with pytest.raises(UserError, match="did you mean spaces"):
        boundaries.words_named("space")
    assert boundaries.words_named("auto") == "auto"


def test_without_rjieba_chinese_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert words("only english", "auto") == ["only", "english"]
    with pytest.raises(UserError, match=r"unmask\[zh\].*--words spaces"):
        words("北京", "auto")
