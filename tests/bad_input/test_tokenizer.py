"""A tokenizer that cannot be trained, read or used is told in one line."""

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tests.bad_input.made import prepare
from tests.command import mistake, pretrain, works


def test_a_vocabulary_larger_than_the_corpus_allows_is_refused_with_the_largest(corpus, tmp_path):
    said = mistake("tokenizer", corpus, "--vocab", 5000, "--out", tmp_path / "t.json")
    assert "but vocab is 5,000" in said
    largest = said.partition("--vocab ")[2].split()[0]
    assert not (tmp_path / "t.json").exists()
    works("tokenizer", corpus, "--vocab", largest, "--out", tmp_path / "t.json")


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "word-bpe", "byte-bpe"])
def test_a_vocabulary_smaller_than_the_alphabet_is_refused_with_the_smallest(corpus, tmp_path, kind):
    said = mistake("tokenizer", corpus, "--kind", kind, "--vocab", 10, "--out", tmp_path / "t.json")
    assert "but vocab is 10" in said
    works(
        "tokenizer",
        corpus,
        "--kind",
        kind,
        "--vocab",
        said.rpartition("--vocab ")[2].split()[0],
        "--out",
        tmp_path / "t.json",
    )


def test_a_unigram_vocabulary_smaller_than_the_alphabet_is_refused(corpus, tmp_path):
    said = mistake("tokenizer", corpus, "--kind", "unigram", "--vocab", 10, "--out", tmp_path / "t.json")
    assert "more different characters than a vocabulary of 10 tokens" in said


def test_a_vocabulary_of_nothing_is_refused(corpus, tmp_path):
    assert "more than 5" in mistake("tokenizer", corpus, "--vocab", 3, "--out", tmp_path / "t.json")


def test_an_unknown_kind_lists_the_nearest(corpus, tmp_path):
    said = mistake("tokenizer", corpus, "--kind", "wordpeice", "--out", tmp_path / "t.json")
    assert "did you mean wordpiece" in said


def test_a_file_that_is_no_tokenizer_is_named(corpus, tmp_path):
    assert "no tokenizer at" in prepare(corpus, tmp_path / "none.json", tmp_path / "data", call=mistake)
    (tmp_path / "t.json").write_text('{"a": 1}')
    assert "is not a tokenizer.json" in prepare(corpus, tmp_path / "t.json", tmp_path / "data", call=mistake)


def test_a_tokenizer_without_mask_is_refused_by_a_masked_recipe_and_taken_by_another(corpus, tmp_path):
    backend = Backend(models.WordLevel({"<|endoftext|>": 0, "the": 1, "The": 2, ".": 3}, unk_token="<|endoftext|>"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(["<|endoftext|>"])
    backend.save(str(tmp_path / "t.json"))
    prepare(corpus, tmp_path / "t.json", tmp_path / "data", "--holdout", "5%")
    said = pretrain("roberta", tmp_path / "data", tmp_path / "run", call=mistake)
    assert "no mask token" in said
    assert "unmask tokenizer" in said
    assert not (tmp_path / "run").exists()
    pretrain("gpt2", tmp_path / "data", tmp_path / "run", steps=1)
