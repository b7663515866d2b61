"""Files of word vectors: gensim reads what we write and we read what gensim writes; damaged files are named by their line."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.errors import UserError
from unmask.vectors import WordVectors, analogy, coverage, nearest, read_vectors, write_vectors

WORDS = ("the", "水", "naïve", "x.y", "3", "king", "queen")


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32))


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_gensim_reads_what_we_write_and_we_read_what_it_writes(name, vectors, tmp_path):
    import gensim.models

    file, binary = tmp_path / name, name.endswith(".bin")
    write_vectors(vectors, file)
    theirs = gensim.models.KeyedVectors.load_word2vec_format(str(file), binary=binary)
    assert tuple(theirs.index_to_key) == WORDS
    np.testing.assert_allclose(theirs.vectors, vectors.matrix, rtol=1e-5)
    theirs.save_word2vec_format(str(file), binary=binary)
    ours = read_vectors(file)
    assert ours.words == WORDS
    np.testing.assert_array_equal(ours.matrix, theirs.vectors)


def test_gloves_format_has_no_first_line_and_words_may_have_spaces(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2.5\n. . 3 -4e-1\nthe 7 7\n")
    found = read_vectors(tmp_path / "v.txt")
    assert found.words == ("the", ". .")
    np.testing.assert_allclose(found.matrix, [[1, 2.5], [3, -0.4]], rtol=1e-6)
    assert list(found.notes.values()) == [1]  # the word that comes twice


@pytest.mark.parametrize(
    "text, said",
    [
        ("2 3\nthe 1 2 3\ncat 1 2\n", "line 3: this line must have a word and 3 finite numbers"),
        ("the 1 2 3\ncat 1 2 3 4\n", "line 2: this line must have a word and 3 finite"),
        ("the 1 2\ncat 1 x2\n", "line 2"),
        ("the 1 2\ncat 1 2x\n", "line 2"),
        ("the 1 2\ncat 1 nan\n", "line 2"),
        ("the 1 2\n\ncat 1 2\n", "line 2"),
        ("3 2\nthe 1 2\ncat 1 2\n", "promises 3 words, and 2 follow"),
        ("3 2\n", "has no words"),
        ("", "is empty"),
        ("the\n", "line 1"),
    ],
)  # fmt: skip
def test_a_damaged_text_file_is_named_by_its_line(text, said, tmp_path):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(UserError, match=said):
        read_vectors(tmp_path / "v.txt")


def test_a_damaged_binary_file_is_refused(vectors, tmp_path):
    file = tmp_path / "v.bin"
    write_vectors(vectors, file)
    whole = file.read_bytes()
    cases = [
        (whole[:-30], "cut off"), (whole[:40], "cut off"), (b"the 1 2\n", "not in word2vec's binary"),
        (b"999999999999 300\n", "cut off"), (b"3 0\na b c ", "two numbers over 0"),
    ]  # fmt: skip
    for text, said in cases:
        file.write_bytes(text)
        with pytest.raises(UserError, match=said):
            read_vectors(file)


def test_nearest_words_and_analogies_are_gensims(vectors):
    import gensim.models

    theirs = gensim.models.KeyedVectors(5)
    theirs.add_vectors(WORDS, vectors.matrix)
    for ours, expected in (
        (nearest(vectors, "king", 4), theirs.most_similar("king", topn=4)),
        (analogy(vectors, "the", "king", "水", 3), theirs.most_similar(["king", "水"], ["the"], topn=3)),
    ):
        assert [one.word for one in ours] == [word for word, _ in expected]
    assert [one.score for one in nearest(vectors, "king", 4)] == pytest.approx(
        [score for _, score in theirs.most_similar("king", topn=4)], abs=1e-5
    )
    assert nearest(vectors, "King", 1)[0].word == nearest(vectors, "king", 1)[0].word
    with pytest.raises(UserError, match="did you mean king"):
        nearest(vectors, "kingg")


def test_a_word_without_a_vector_and_without_a_like_does_not_list_the_vocabulary(vectors):
    with pytest.raises(UserError) as error:
        nearest(vectors, "淇")
    assert str(error.value) == (
        f"'淇' has no vector, and {len(WORDS)} other words have one: give another word, or make vectors of more text"
    )


def test_coverage_counts_words_and_different_words(vectors):
    found = coverage(vectors, [("the", 6), ("cat", 3), ("水", 1)])
    assert (found.words, found.known, found.different, found.different_known) == (10, 7, 3, 2)
    assert found.missing == ("cat",)
