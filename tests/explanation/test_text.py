"""A text becomes a row: its tokenizer, its documents, its words; notes say what does not fit."""

import pytest

from tests.explanation.given import CHINESE, PAIR, tiny
from unmask.errors import UserError
from unmask.explanation import explain
from unmask.explanation import text_row as row_module
from unmask.explanation.records import shown
from unmask.text import Tokenizer, boundaries


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_without_a_tokenizer_a_small_one_knows_the_text(name: str) -> None:
    explanation = explain(tiny(name), CHINESE)
    assert "2,000 tokens" in explanation.notes[0]
    text = "".join(shown(token.original) for token in explanation.tokens if not token.special)
    assert set(text) <= set(CHINESE + row_module.OTHER_HAN)
    assert not any("UNK" in token.text for token in explanation.tokens)


def test_a_small_tokenizer_takes_the_size_that_there_is_text_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_module, "_documentation", lambda: ())
    assert len(explain(tiny("bert"), PAIR + " It rained.").tokens) > 10
    assert explain(tiny("roberta", "tokenizer.vocab=300"), PAIR).notes[0].count("300 tokens") == 1


def test_a_pair_of_one_document_draws_from_a_line_of_ours(trained: dict[str, Tokenizer]) -> None:
    explanation = explain(tiny("bert", "arrange.random=1"), "The doctor left.", tokenizer=trained["bert"])
    texts = [[t.original for t in explanation.tokens if t.segment == s and not t.special] for s in (0, 1)]
    assert texts[0] == [trained["bert"].readable(i) for i in trained["bert"].encode("The doctor left.")]
    assert texts[1]
    assert [answer.label for answer in explanation.answers] == [1]
    assert any("a built-in example text" in note for note in explanation.notes)


def test_a_pair_of_several_documents_draws_from_them(trained: dict[str, Tokenizer]) -> None:
    text = "The doctor left.\n\nThe patient slept."
    explanation = explain(tiny("bert", "arrange.random=1"), text, tokenizer=trained["bert"])
    known = {trained["bert"].readable(i) for i in trained["bert"].encode(text)}
    assert {token.original for token in explanation.tokens if not token.special} == known
    assert not any("a built-in example text" in note for note in explanation.notes)


def test_a_text_longer_than_a_row_says_so(trained: dict[str, Tokenizer]) -> None:
    first = trained["roberta"].encode(PAIR[: PAIR.index(".") + 1])
    for settings, length in (((), 1 + len(first) + 1), (("arrange.fill=true",), 16)):
        recipe = tiny("roberta", "schedule.0.length=16", *settings)
        explanation = explain(recipe, PAIR, tokenizer=trained["roberta"])
        assert len(explanation.tokens) == length
        assert "rows of 16 tokens" in explanation.notes[-1]


def test_without_rjieba_every_chinese_character_is_a_word(
    monkeypatch: pytest.MonkeyPatch, trained: dict[str, Tokenizer]
) -> None:
    monkeypatch.setattr(boundaries, "find_spec", lambda name: None)
    explanation = explain(tiny("gpt2"), CHINESE, tokenizer=trained["gpt2"])
    words = [token.word for token in explanation.tokens if not token.special]
    assert len(set(words)) == len(words)
    assert any("rjieba" in note for note in explanation.notes)


def test_nothing_to_explain_is_a_mistake(trained: dict[str, Tokenizer]) -> None:
    with pytest.raises(UserError, match="no text to explain"):
        explain(tiny("bert"), " \n\n ", tokenizer=trained["bert"])
    with pytest.raises(UserError, match="visit must be 0 or more"):
        explain(tiny("bert"), PAIR, tokenizer=trained["bert"], visit=-1)
