"""Tokens, their words and their sentences: judged by the segmenter itself, by plain loops and by the source text."""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import rjieba
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import documents
from unmask.batch import Document
from unmask.text import BPE, ByteBPE, Characters, Tokenizer, Unigram, WordBPE, WordPiece, encode_documents, train
from unmask.text.columns import BEGINS

MIXED = [
    "患者出现严重头痛，服用 aspirin 100mg 后好转。",
    "我在北京大学学习computer science，今年2024年！",
    "价格是3.14元（约0.5%），真便宜😀😀吧？",
    "他说：“[UNK] 是未知词”，然后 left-over 的 tokens 继续…",
    "南京市长江大桥 is 1577 metres long；上海🏙️ too.",
    "罕见字𠀀𠮷和龘靐齉，以及 naïve café。",
]
KINDS = ("wordpiece", "characters", "byte-bpe", "bpe", "word-bpe", "unigram")


@cache
def tokenizer(kind: str) -> Tokenizer:
    kinds = {
        "wordpiece": WordPiece(vocab=200),
        "characters": Characters(vocab=120),
        "byte-bpe": ByteBPE(vocab=330),
        "bpe": BPE(vocab=220),
        "word-bpe": WordBPE(vocab=280),
        "unigram": Unigram(vocab=150),
    }
    return train(kinds[kind], documents(40) + MIXED[:5] * 3)


def one(text: str, kind: str, words: str = "auto") -> Document:
    return encode_documents([text], tokenizer(kind), words)[0]


def begins(document: Document) -> np.ndarray:
    """Whether each token begins a word."""
    return document.columns["word"].values == BEGINS


def offsets(text: str, kind: str) -> list[tuple[int, int]]:
    return tokenizer(kind).backend.encode(text, add_special_tokens=False).offsets


def solid(character: str) -> bool:
    return not character.isspace()


def expected_starts(text: str, spans: list[tuple[int, int]], words: list[str]) -> list[bool]:
    """By definition: a token continues a word iff that word also has a character in the token before it."""
    assert "".join(words) == text
    owner = [number for number, word in enumerate(words) for _ in word]
    held = []
    for start, end in spans:
        mine = {owner[c] for c in range(start, end) if solid(text[c])}
        if not mine:  # nothing but spaces, which belong to what follows
            mine = {owner[next(c for c in range(start, len(text)) if solid(text[c]))]}
        held.append(mine)
    return [True] + [not (before & after) for before, after in pairwise(held)]


def spaced_words(text: str) -> list[str]:
    """Runs of letters, digits and marks; every other character alone, and so is every Han character."""
    words: list[str] = []
    for character in text:
        letter = unicodedata.category(character)[0] in "LNM" and "CJK" not in unicodedata.name(character, "")
        if letter and words and words[-1][-1:].isalnum() and "CJK" not in unicodedata.name(words[-1][-1], ""):
            words[-1] += character
        else:
            words.append(character)
    return words


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", MIXED)
def test_chinese_words_are_the_segmenters(kind, text):
    document = one(text, kind)
    assert begins(document).tolist() == expected_starts(text, offsets(text, kind), list(rjieba.cut(text)))


@pytest.mark.parametrize("text", [text.replace("[UNK]", "UNK") for text in MIXED])
def test_with_a_token_per_character_each_group_spells_exactly_one_segmenter_word(text):
    document, spans = one(text, "characters"), offsets(text, "characters")
    groups = np.split(np.arange(len(spans)), np.flatnonzero(begins(document))[1:])
    spelled = [text[spans[g[0]][0] : spans[g[-1]][1]].strip() for g in groups]
    assert [word for word in spelled if word] == [word.strip() for word in rjieba.cut(text) if word.strip()]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe"])
def test_a_text_with_unknown_tokens_keeps_its_words(kind):
    text = "龘靐齉在北京 [UNK] qqqq 里"
    document = one(text, kind)
    assert begins(document).tolist() == expected_starts(text, offsets(text, kind), list(rjieba.cut(text)))
    if kind == "wordpiece":
        assert tokenizer(kind).role("unk") in document.ids


PIECES = st.sampled_from(
    [
        "患者",
        "头痛",
        "北京",
        "大学",
        "的",
        "龘",
        "𠀀",
        " ",
        "  ",
        "aspirin",
        "The",
        "x",
        "10",
        "3.14",
        "50%",
        "，",
        "。",
        "“",
        "”",
    ]
    + ["(", ")", "-", "_", "😀", "👍🏽", "[UNK]", "[MASK]", "é", "ß", "İ", "Привет", "\t", "!", "…", "~", "ａ", "１"]
)


@pytest.mark.parametrize("kind", ["wordpiece", "characters", "byte-bpe"])
@given(pieces=st.lists(PIECES, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_of_any_mixed_text_are_never_shared_nor_split(kind, pieces):
    text = "".join(pieces).strip()
    if not text:
        return
    document, spans = one(text, kind, "rjieba"), offsets(text, kind)
    if any("一" <= c <= "鿿" or c >= "𠀀" and c <= "𪛟" for c in text):
        assert begins(document).tolist() == expected_starts(text, spans, list(rjieba.cut(text)))
    assert len(document.ids) == len(begins(document)) == len(spans)
    assert document.sentences[0] == 0
    assert (np.diff(document.sentences) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_english_words_are_runs_of_letters_and_marks_stand_alone(kind):
    text = "The well-known judge's 3rd report, (naïve) costs 5$ – see Fig.2!"
    spans = offsets(text, kind)
    for way in ("auto", "spaces"):
        assert begins(one(text, kind, way)).tolist() == expected_starts(text, spans, spaced_words(text))


def test_without_words_every_token_begins_one_but_bytes_of_one_character_do_not():
    text = "doctor 龘"
    document, spans = one(text, "byte-bpe", "none"), offsets(text, "byte-bpe")
    assert begins(document).tolist() == [True] + [a != b for (a, _), (b, _) in pairwise(spans)]


def test_spaces_makes_every_han_character_a_word():
    assert begins(one("北京大学", "characters", "spaces")).all()


@pytest.mark.parametrize("kind", ["characters", "byte-bpe"])
def test_the_source_substrings_of_the_words_join_to_the_text(kind):
    for text in MIXED:
        document, spans = one(text, kind), offsets(text, kind)
        places = [spans[i][0] for i in np.flatnonzero(begins(document))]
        parts = [text[a:b] for a, b in pairwise([0, *places[1:], len(text)])]
        assert "".join(parts) == text
        assert tokenizer("byte-bpe").decode(one(text, "byte-bpe").ids.tolist()).replace("<unk>", "[UNK]") == text


def test_a_line_with_chinese_is_segmented_and_the_next_line_is_not():
    document = one("北京大学\nleft-over", "characters", "auto")
    words = np.split(document.ids, np.flatnonzero(begins(document))[1:])
    assert [len(word) for word in words] == [4, 1, 4, 1, 4]  # 北京大学, the line's end, left, -, over


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_begins_a_sentence_and_a_word(kind):
    lines = ["The doctor examined the case. The judge ignored it!", "our server", "北京大学。我在这里"]
    counts = [len(one(line, kind).ids) for line in lines]
    document = one("\n".join(lines), kind)
    sizes = [len(tokenizer(kind).encode_many([line + end])[0]) for line, end in zip(lines, "\n\n ", strict=True)]
    firsts = [0, sizes[0], sizes[0] + sizes[1]]
    assert set(firsts) <= set(document.sentences.tolist())
    assert begins(document)[firsts].all()
    assert len(document.sentences) == 5
    assert len(document.ids) >= sum(counts)


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_at_once_give_what_each_gives_alone(kind):
    texts = [*MIXED, "", " \n ", "one\n\ntwo\r\nthree\n", "The end. "]
    together = encode_documents(texts, tokenizer(kind), "auto")
    assert len(together) == len(texts)
    for text, document in zip(texts, together, strict=True):
        alone = one(text, kind)
        assert np.array_equal(document.ids, alone.ids)
        assert np.array_equal(begins(document), begins(alone))
        assert np.array_equal(document.sentences, alone.sentences)


def test_blank_texts_give_empty_documents():
    for text in ("", "  \n\n \t"):
        document = one(text, "wordpiece")
        assert len(document.ids) == len(begins(document)) == len(document.sentences) == 0


def test_no_text_gives_no_document():
    assert encode_documents([], tokenizer("wordpiece"), "auto") == []


@pytest.mark.parametrize("kind", ["characters", "byte-bpe"])
def test_sentences_of_the_tokens_are_the_sentences_of_the_text(kind):
    sentences = ["Dr. Smith came at 5 p.m. to see it.", "He left!", "“Why?”", "No one knows."]
    text = " ".join(sentences)
    document, spans = one(text, kind), offsets(text, kind)
    begins = [spans[i][0] for i in document.sentences]
    found = [text[a:b].strip() for a, b in pairwise([*begins, len(text)])]
    assert found == sentences
