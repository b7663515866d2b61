"""Full-width forms are read as half-width ones by a tokenizer that folds, wherever it is used."""

from __future__ import annotations

import json
import unicodedata

import pytest

from tests.command import pretrain, works
from tests.conftest import documents
from tests.text.test_encode import begins
from unmask.data import Shards
from unmask.text import Characters, Tokenizer, Unigram, WordPiece, encode_documents, train
from unmask.text.fold_width import FULL, folded

TEXT = "ＧＰＴ－２有１２４Ｍ个参数，是吗？　是的！他说（ＯＫ）。"
PLAIN = "GPT-2有124M个参数,是吗? 是的!他说(OK)。"
TEXTS = [TEXT, PLAIN, "今天 ABC"] * 4


def test_folding_is_what_unicode_says_of_full_width_forms_and_touches_nothing_else():
    every = "".join(map(chr, range(0x3000, 0xFFFF)))
    for character in every:
        wide = (
            unicodedata.name(character, "").startswith("FULLWIDTH")
            and unicodedata.normalize("NFKC", character).isascii()
        )
        if wide or character == "\u3000":
            assert folded(character) == unicodedata.normalize("NFKC", character)
        else:
            assert folded(character) == character
    assert len(folded(every)) == len(every)
    assert folded("".join(FULL)).isascii()


@pytest.mark.parametrize("kind", [WordPiece(vocab=90), Characters(vocab=60), Unigram(vocab=60)])
def test_both_forms_give_the_same_tokens_after_saving_and_opening(tmp_path, kind):
    train(kind, TEXTS, at_most=True, fold=True).save(tmp_path / "t.json")
    tokenizer = Tokenizer.load(tmp_path / "t.json")
    assert tokenizer.folds
    assert tokenizer.encode(TEXT) == tokenizer.encode(PLAIN)
    assert not set(FULL) & set("".join(tokenizer.backend.get_vocab()))
    assert tokenizer.folding() is tokenizer


@pytest.mark.parametrize("kind", [WordPiece(vocab=90), Characters(vocab=60)])
def test_a_tokenizer_that_does_not_fold_can_be_made_to(kind):
    tokenizer = train(kind, TEXTS, at_most=True)
    assert not tokenizer.folds
    assert tokenizer.encode(TEXT) != tokenizer.encode(PLAIN)
    other = tokenizer.folding()
    assert other.folds
    assert not tokenizer.folds
    assert other.encode(TEXT) == tokenizer.encode(PLAIN)
    assert other.checksum != tokenizer.checksum


@pytest.mark.parametrize("words", ["spaces", "rjieba"])
def test_words_and_sentences_are_those_of_the_folded_text(words):
    pytest.importorskip("rjieba")
    tokenizer = train(Characters(vocab=60), TEXTS, fold=True)
    one, other = (encode_documents([text], tokenizer, words)[0] for text in (TEXT, PLAIN))
    assert one.ids.tolist() == other.ids.tolist()
    assert begins(one).tolist() == begins(other).tolist()
    assert one.sentences.tolist() == other.sentences.tolist()


def test_prepared_data_and_runs_made_from_it_keep_a_tokenizer_that_folds(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join([*documents(60), *TEXTS]), encoding="utf-8")
    corpus, plain, wide = tmp_path / "a.txt", tmp_path / "plain.json", tmp_path / "wide.json"
    works("tokenizer", corpus, "--kind", "characters", "--out", plain)
    assert json.loads(works("tokenizer", corpus, "--kind", "characters", "--fold", "--out", wide, "--json").out)["fold"]
    for name, words in {
        "no": ("--tokenizer", plain), "asked": ("--tokenizer", plain, "--fold"), "has": ("--tokenizer", wide),
    }.items():  # fmt: skip
        works("prepare", corpus, *words, "--out", tmp_path / name, "--workers", 1, "--holdout", "10%")
        tokenizer = Tokenizer.load(tmp_path / name)
        assert tokenizer.folds == Shards(tmp_path / name).manifest["fold"] == (name != "no")
        assert (tokenizer.encode(TEXT) == tokenizer.encode(PLAIN)) == (name != "no")
    pretrain("bert", tmp_path / "asked", tmp_path / "run", steps=1)
    assert Tokenizer.load(tmp_path / "run").encode(TEXT) == Tokenizer.load(tmp_path / "run").encode(PLAIN)
