"""Words as tokens, in English and Chinese: their places, their spelling, and unknown words that keep it."""

import sys

import pytest

from unmask import text
from unmask.errors import UserError
from unmask.text.encode import PLACES, encode_documents
from unmask.text.word_tokens import BYTES, SPELLING

DOCUMENTS = ["The doctor's report, 3 pages.\n我们在北京大学学习。", "The doctor saw 北京大学！"]
WORDS = ["The", "doctor", "'", "s", "report", ",", "3", "pages", ".", "我们", "在", "北京大学", "学习", "。"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    made = text.train(text.WholeWords(vocab=60, split="words", spelled=True), DOCUMENTS)
    made.save(tmp_path_factory.mktemp("words") / "t.json")
    return text.Tokenizer.load(tmp_path_factory.getbasetemp() / "words0" / "t.json")


def test_every_word_is_a_token_with_its_place_and_its_spelling(tokenizer):
    pytest.importorskip("rjieba")
    first, _ = encode_documents(DOCUMENTS, tokenizer, "none", places=True)
    assert [tokenizer.token(i) for i in first.ids] == WORDS
    assert [DOCUMENTS[0][a:b] for a, b in first.columns[PLACES].values] == WORDS
    assert [bytes(row[row < 255]).decode() for row in first.columns[SPELLING].values] == WORDS
    assert tokenizer.encode(DOCUMENTS[0]) == first.ids.tolist()
    assert tokenizer.decode(tokenizer.encode("我们在北京大学学习")) == "我们在北京大学学习"


def test_chinese_characters_without_the_segmenter_are_refused_and_shown(tokenizer, monkeypatch):
    """No other way of cutting stands in for it: a model would read other words on another machine."""
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert tokenizer.encode("The doctor saw nothing.")
    with pytest.raises(
        UserError, match="rjieba, which is not installed.*the first: 'The doctor saw the 北京大学 hospital"
    ):
        tokenizer.encode("The doctor saw the 北京大学 hospital, and left.")


def test_an_unknown_word_keeps_its_spelling_up_to_a_limit(tokenizer):
    (found,) = encode_documents([f"doctor blorp {'x' * 70}"], tokenizer, "none")
    unknown = tokenizer.vocabulary.unknown
    assert found.ids.tolist()[1:] == [unknown, unknown]
    rows = found.columns[SPELLING].values
    assert [bytes(row[row < 255]) for row in rows] == [b"doctor", b"blorp", b"x" * BYTES]


def test_other_tokenizers_have_no_spelling():
    plain = text.train(text.WholeWords(vocab=60, split="words"), DOCUMENTS[1:])
    assert plain.of_words
    assert SPELLING not in encode_documents(["The doctor"], plain, "none")[0].columns
    assert not text.train(text.WholeWords(vocab=60), DOCUMENTS).of_words
    with pytest.raises(UserError, match="set tokenizer.split=words"):
        text.WholeWords(spelled=True)
