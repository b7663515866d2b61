"""Word vectors from the command line: gensim's own numbers, words as the segmenter finds them, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from tests.command import mistake, works
from unmask.vectors import read_vectors
from unmask.vectors.word_file import Cutting, WordCounts


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    dice = random.Random(0)
    file = tmp_path_factory.mktemp("vectors") / "text.txt"
    lines = [" ".join(dice.choices(["The", "cat", "sat", "on", "a", "mat."], k=12)) for _ in range(80)]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "fasttext"])
def test_the_vectors_are_gensims_own(kind, corpus, tmp_path):
    import gensim.models

    words = ["--kind", kind, "--dims", 8, "--epochs", 3, "--workers", 1, "--seed", 3]
    works("vectors", corpus, *words, "--out", tmp_path / "v.bin")
    ours = read_vectors(tmp_path / "v.bin")
    lines = corpus.read_text().lower().replace(".", " .").splitlines()
    (tmp_path / "words").write_text("".join(line + "\n" for line in lines))
    model = gensim.models.FastText if kind == "fasttext" else gensim.models.Word2Vec
    theirs = model(
        corpus_file=str(tmp_path / "words"), vector_size=8, sg=int(kind != "cbow"), epochs=3, workers=1, seed=3
    )
    assert ours.words == tuple(theirs.wv.index_to_key)
    np.testing.assert_allclose(ours.matrix, theirs.wv.vectors, atol=1e-4)


def test_glove_from_text_to_near_words_and_coverage(corpus, tmp_path):
    out = tmp_path / "new" / "v.txt"
    summary = json.loads(
        works("vectors", corpus, "--kind", "glove", "--dims", 4, "--epochs", 2, "--out", out, "--json").out
    )
    assert (summary["words"], summary["dims"], summary["coverage"]) == (7, 4, 1.0)
    assert [file.name for file in out.parent.iterdir()] == ["v.txt"]  # no temporary file is left
    assert len(json.loads(works("near", out, "cat", "-k", 3, "--json").out)) == 3
    assert len(json.loads(works("analogy", out, "the", "cat", "a", "-k", 2, "--json").out)) == 2
    (tmp_path / "other.txt").write_text("the cat ate the dog")
    ran = works("vectors", tmp_path / "other.txt", "--from", out, "--out", tmp_path / "v.bin")
    assert "60.0% of 5 words" in ran.err
    assert "without: ate, dog" in ran.err
    assert read_vectors(tmp_path / "v.bin").words == read_vectors(out).words


@pytest.mark.parametrize(
    "words, said",
    [
        (["--kind", "glov", "--out", "v.txt"], "unknown kind of word vectors 'glov': did you mean glove?"),
        (["--kind", "cbow", "--components", "x.tsv", "--out", "v.txt"], "--components is for --kind glove"),
        (["--window", 65, "--out", "v.txt"], "--window must be from 1 to 64 words, got 65"),
        (["--least-count", 9999, "--out", "v.txt"], "only 0 words come 9999 times or more"),
        (["--from", "v.txt", "--kind", "glove"], "--kind has no effect with --from"),
        ([], "--out is missing"),
        (["--workers", 0, "--out", "v.txt"], "--workers must be 1 or more, got 0"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(words, said, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in mistake("vectors", corpus, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["skipgram", "glove"])
def test_a_seed_below_0_is_a_seed_like_others(kind, corpus, tmp_path):
    words = ["--kind", kind, "--dims", 4, "--epochs", 1, "--workers", 1, "--seed", -1]
    works("vectors", corpus, *words, "--out", tmp_path / "v.txt")


def test_a_table_of_components_is_checked_by_line(corpus, tmp_path):
    table = tmp_path / "parts.tsv"
    for text, said in (
        ("河\t氵可\n海氵每\n", "line 2"),
        ("河\t氵可\n河\t可\n", "a second time"),
        ("\n", "has no characters"),
    ):
        table.write_text(text, encoding="utf-8")
        words = ["--kind", "glove", "--components", table, "--out", tmp_path / "v.txt"]
        assert said in mistake("vectors", corpus, *words)


def test_words_are_those_of_the_segmenter_and_lines_stay():
    assert Cutting()("我们在北京大学学习。\nIt's NEW").split(" ") == [
        "", "我们", "在", "北京大学", "学习", "。", "\n", "it", "'", "s", "", "new"
    ]  # fmt: skip
    assert "NEW" in Cutting(lowercase=False)("NEW")


def test_counts_of_words_stay_bounded_and_keep_frequent_words():
    counts = WordCounts(most=10)
    for number in range(200):
        counts.add(Counter({"often": 2, f"rare {number}": 1}))
    assert len(counts.counts) <= 10
    assert counts.frequent(2) == [("often", 400)]
