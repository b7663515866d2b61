"""Word vectors in networks: embeddings that start as vectors, and a file of vectors as a run."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import unmask
from tests.command import mistake, pretrain, run, works
from unmask import recipes, text
from unmask.errors import UserError
from unmask.system import check_training
from unmask.system.continued import check_continued
from unmask.vectors import FromVectors, WordVectors, write_vectors

WORDS = ("the", "cat", "sat", ",", "北京")


@pytest.fixture
def file(tmp_path):
    write_vectors(WordVectors(WORDS, np.arange(20, dtype=np.float32).reshape(5, 4) + 1), tmp_path / "v.txt")
    return tmp_path / "v.txt"


def test_embeddings_start_as_the_vectors_of_the_words_that_tokens_spell(file):
    words = [None, "cat", "Sat", "dog", "##the", "北京"]
    for zeros in (False, True):
        table = torch.full((6, 4), -1.0)
        notice = FromVectors(str(file), zeros=zeros).fill(table, [], words, None)
        other = [0.0 if zeros else -1.0] * 4
        assert table.tolist() == [other, [5, 6, 7, 8], [9, 10, 11, 12], other, other, [17, 18, 19, 20]]
        assert "3 of 5 tokens of the vocabulary (60%) start as their vectors" in notice
    with pytest.raises(
        UserError, match="has vectors of 4, and the embeddings have 3 numbers: make vectors with --dims 3"
    ):
        FromVectors(str(file)).fill(torch.zeros(1, 3), [], ["cat"], None)
    with pytest.raises(UserError, match="none of the words"):
        FromVectors(str(file)).fill(torch.zeros(1, 4), [], ["dog"], None)


def test_tokens_spell_words_without_the_marks_of_their_tokenizer(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat and the cat sat " * 20)
    for kind, name in (("byte-bpe", "Ġcat"), ("word-bpe", "cat</w>"), ("whole-words", "cat")):
        tokenizer = text.train(text.kind_named(kind, 300), text.Corpus([tmp_path / "a.txt"]), at_most=True)
        spelled = tokenizer.spelled()
        assert spelled[tokenizer.backend.token_to_id(name)] == "cat"
        assert spelled[tokenizer.vocabulary.pad] is None


def test_pretraining_begins_with_the_vectors_and_says_how_many(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat and the cat sat " * 200)
    works("vectors", tmp_path / "a.txt", "--dims", 128, "--epochs", 1, "--out", tmp_path / "v.txt")
    start = ["--set", "start=FromVectors", "--set", f"start.file={tmp_path / 'v.txt'}", "--set", "optimise.rate=1e-12"]
    ran = pretrain("gpt2", tmp_path / "a.txt", tmp_path / "run", *start, steps=1)
    assert "start as their vectors in" in ran.err
    model, vectors = unmask.load(tmp_path / "run"), unmask.load_vectors(tmp_path / "v.txt").vectors
    token = model.tokenizer.spelled().index("cat")
    table = model.system.backbone.embed.token.weight.detach().numpy()
    np.testing.assert_allclose(table[token], vectors.matrix[vectors.places["cat"]], atol=1e-6)
    assert model.recipe.start.file == str(tmp_path / "v.txt")


def test_adaptive_embeddings_have_no_single_table_to_start():
    recipe = recipes.get("transformer-xl", size="tiny", variant="words", settings=["start=FromVectors"])
    with pytest.raises(UserError, match="start=FromVectors needs one table of token embeddings"):
        check_training(recipe)


def test_a_start_has_no_effect_on_a_network_that_comes_from_a_run():
    usual, asked = (
        recipes.get("gpt2", size="tiny", settings=given) for given in ([], ["start=FromVectors(file=v.txt)"])
    )
    with pytest.raises(
        UserError, match="start=FromVectors.* would have no effect, because the network comes from a run"
    ):
        check_continued(asked, usual, usual)


def test_import_says_that_nothing_is_there_before_it_speaks_of_settings(tmp_path):
    words = ("import", tmp_path / "v.txt", "--set", "system.backbone=SpelledBiLSTM", "--out", tmp_path / "run")
    assert "v.txt: name a file of word vectors" in mistake(*words)


def test_a_file_of_vectors_is_a_run_whose_texts_are_bags_of_words(tmp_path):
    from sklearn.linear_model import LogisticRegression

    dice = np.random.default_rng(0)
    names = ("good", "fine", "bad", "poor", "film", ".")
    matrix = dice.standard_normal((6, 8)).astype(np.float32)
    write_vectors(WordVectors(names, matrix), tmp_path / "v.txt")
    works("import", tmp_path / "v.txt", "--out", tmp_path / "run")
    model = unmask.load(tmp_path / "run")
    assert model.tokenizer.encode("A Good film.") == [1, 5, 9, 10]  # [UNK], and the words after five special tokens
    table = model.system.backbone.embed.token.weight.detach().numpy()
    np.testing.assert_allclose(table[5:], matrix, rtol=1e-5)
    assert not table[:5].any()
    texts = [" ".join(dice.choice(names, 4)) for _ in range(60)]
    labels = [
        "yes" if text.count("good") + text.count("fine") > text.count("bad") + text.count("poor") else "no"
        for text in texts
    ]
    lines = [json.dumps({"text": one, "label": label}) + "\n" for one, label in zip(texts, labels, strict=True)]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    adapt = [
        "--tune",
        "head",
        "--set",
        "pool=mean",
        "--set",
        "epochs=40",
        "--set",
        "decay=0",
        "--out",
        tmp_path / "adapted",
    ]
    works("adapt", tmp_path / "run", tmp_path / "train.jsonl", *adapt)
    scores = json.loads(works("evaluate", tmp_path / "adapted", tmp_path / "train.jsonl", "--json").out)
    bags = np.stack([np.mean([matrix[names.index(word)] for word in one.split()], 0) for one in texts])
    oracle = LogisticRegression(C=1e4, max_iter=1000).fit(bags, labels).score(bags, labels)
    assert scores["accuracy"] >= oracle - 0.05


def test_chinese_text_is_cut_into_known_words(tmp_path):
    words = ("的", "我们", "北京", "北京大学", "学习", "在")
    write_vectors(WordVectors(words, np.ones((6, 2), np.float32)), tmp_path / "v.txt")
    works("import", tmp_path / "v.txt", "--out", tmp_path / "run")
    tokenizer = unmask.load(tmp_path / "run").tokenizer
    assert [tokenizer.token(i) for i in tokenizer.encode("我们在北京大学学习吗")] == [
        "我们",
        "在",
        "北京大学",
        "学习",
        "[UNK]",
    ]


@pytest.mark.parametrize(
    "given, said",
    [
        ([], "start.file is none"),
        (["--set", "start.file=none.txt"], "no word vectors at none.txt"),
        (["--set", "start.file=v.txt"], "v.txt has vectors of 4, and the embeddings have 128 numbers"),
        (["--set", "start.file=v.bin"], "v.bin has vectors of 4, and the embeddings have 128 numbers"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused_before_the_text_is_read(given, said, file, monkeypatch):
    """Tokenising a large corpus takes hours, and CoVe cannot begin without vectors."""
    monkeypatch.chdir(file.parent)
    works("vectors", "--from", file, "--out", "v.bin")
    pairs = file.with_name("pairs.jsonl")
    pairs.write_text('{"source": "the cat", "target": "die Katze"}\n' * 9, encoding="utf-8")
    ran = run("pretrain", "cove", pairs, "--size", "tiny", *given, "--budget", "1steps", "--out", file.with_name("run"))
    assert (ran.code, ran.err.count("\n")) == (1, 1)  # no tokenizer was trained
    assert said in ran.err
