"""An index finds what an explicit loop over all texts finds; it can be added to, and it knows the model that made it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from tests.convert.parts import model_of, recipe_of, tokenizer_for
from unmask.adapt import adapt
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import answer, embed, open_run
from unmask.search import nearest, rerank
from unmask.search.stored_texts import StoredTexts, write_texts
from unmask.tasks import Classify, Embed, Multi, Number, Rank, Span
from unmask.tasks._compared import Compared
from unmask.tasks.classify import Example

TEXTS = [f"the {who} {did} in the {place}" for who in ("doctor", "patient", "old man") for did in ("slept", "sings")
         for place in ("city", "rain 雨", "house")]  # fmt: skip
QUERIES = ["a doctor sings", "rain"]


@pytest.fixture(scope="module")
def runs(tokenizers, tmp_path_factory):
    """A folder with a run that makes vectors, another one, and one that reads pairs."""
    folder = tmp_path_factory.mktemp("runs")
    base = base_of("bert", tokenizers["wordpiece"], folder / "base")
    some = [Compared((TEXTS[i], TEXTS[i + 1])) for i in range(4)]
    pairs = [Example(Text("a", "b"), "0"), Example(Text("c", "d"), "1")]
    for name, task, examples in (
        ("vectors", Embed(epochs=1, dims=(4,)), some), ("other", Embed(epochs=2), some), ("cross", Classify(epochs=1), pairs),
    ):  # fmt: skip
        for _ in adapt(base, examples, folder / name, task=task):
            pass
    return folder


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    return tmp_path / "texts.txt"


def test_an_index_finds_what_a_loop_over_all_texts_finds(runs, collection, tmp_path):
    made = unmask.index(runs / "vectors", collection, tmp_path / "idx", device="cpu", progress=False)
    opened = unmask.open_index(tmp_path / "idx", device="cpu")
    model = open_run(runs / "vectors", device="cpu")
    vectors = [embed(model, [text]).value[0] for text in TEXTS]
    for query in QUERIES:
        wanted = sorted(((float(embed(model, [query]).value[0] @ v), i) for i, v in enumerate(vectors)), reverse=True)[
            :3
        ]
        found = opened.search(query, k=3)
        assert [one.id for one in found] == [str(i) for _, i in wanted]
        assert [one.text for one in found] == [TEXTS[i] for _, i in wanted]
        assert [one.score for one in found] == pytest.approx([score for score, _ in wanted], abs=1e-5)
    assert made.search(QUERIES, k=3) == opened.search(QUERIES, k=3)
    assert len(opened) == len(TEXTS)
    assert len(opened.search("rain", k=100)) == len(TEXTS)


def test_texts_that_are_added_are_found_as_if_they_had_been_there(runs, tmp_path):
    whole = [{"id": f"t{i}", "text": text} for i, text in enumerate(TEXTS)]
    for name, rows in (("whole", whole), ("one", whole[:7]), ("two", whole[7:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    at_once = unmask.index(runs / "vectors", tmp_path / "whole.jsonl", tmp_path / "a", device="cpu", progress=False)
    unmask.index(runs / "vectors", tmp_path / "one.jsonl", tmp_path / "b", device="cpu", progress=False)
    works("index", runs / "vectors", tmp_path / "two.jsonl", "--out", tmp_path / "b", "--add")
    added = unmask.open_index(tmp_path / "b", device="cpu")
    for a, b in zip(at_once.search(QUERIES, k=20), added.search(QUERIES, k=20), strict=True):
        assert [one.id for one in a] == [one.id for one in b]
        assert [one.score for one in a] == pytest.approx([one.score for one in b], abs=1e-5)
    with pytest.raises(UserError, match="the id 't7' is there twice, or in the index already"):
        added.add(tmp_path / "two.jsonl", progress=False)
    assert len(unmask.open_index(tmp_path / "b", device="cpu")) == len(TEXTS)


def test_texts_without_ids_are_numbered_on_when_they_are_added(runs, tmp_path):
    (tmp_path / "t.txt").write_text("the doctor\nrain\n")
    made = unmask.index(runs / "vectors", tmp_path / "t.txt", tmp_path / "idx", device="cpu", progress=False)
    (tmp_path / "t.txt").write_text("a house\nthe city\n")
    found = made.add(tmp_path / "t.txt", progress=False).search("rain")
    assert {one.id: one.text for one in found} == {"0": "the doctor", "1": "rain", "2": "a house", "3": "the city"}


def test_an_index_of_first_dimensions_compares_only_those(runs, collection, tmp_path):
    found = unmask.index(runs / "vectors", collection, tmp_path / "idx", dims=4, device="cpu", progress=False).search(
        "rain"
    )
    model = open_run(runs / "vectors", device="cpu")
    query, texts = embed(model, ["rain"], dims=4).value, embed(model, TEXTS, dims=4).value
    assert [one.score for one in found] == pytest.approx(np.sort(query @ texts.T)[0, ::-1][:10], abs=1e-5)


def test_the_nearest_texts_are_ordered_again_by_a_model_that_reads_pairs(runs, collection, tmp_path):
    opened = unmask.index(runs / "vectors", collection, tmp_path / "idx", device="cpu", progress=False)
    cross = open_run(runs / "cross", device="cpu")
    near = opened.search("rain", k=6)
    shares = {one.text: answer(cross, [("rain", one.text)]).answers[0].probabilities["1"] for one in near}
    found = opened.search("rain", k=2, rerank=runs / "cross", first=6)
    wanted = sorted(shares, key=lambda text: -shares[text])[:2]
    assert [one.text for one in found] == wanted
    assert [one.score for one in found] == pytest.approx([shares[text] for text in wanted], abs=1e-5)


PAIR = [("rain", "the doctor"), ("rain", "rain")]


@pytest.mark.parametrize(
    "task,wanted",
    [
        (Number(texts=2, mean=1.0, deviation=2.0), lambda one: one.number),
        (Classify(texts=2, labels=("0", "1")), lambda one: one.probabilities["1"]),
        (Multi(texts=2, labels=("0", "1")), lambda one: one.probabilities["1"]),
        (Rank(), lambda one: one.score),
    ],
)
def test_every_task_of_pairs_says_how_well_a_text_answers_a_query(task, wanted, tmp_path):
    base = model_of(recipe_of("bert"), tokenizer_for(recipe_of("bert")), tmp_path)
    model = model_of(task.recipe(base), base.tokenizer, tmp_path)
    scores = rerank(model, "rain", [text for _, text in PAIR])
    assert scores == pytest.approx([wanted(one) for one in answer(model, PAIR).answers], abs=1e-5)
    assert scores[0] != pytest.approx(scores[1], abs=1e-4)


def test_a_task_that_does_not_say_it_cannot_re_rank(tmp_path):
    base = model_of(recipe_of("bert"), tokenizer_for(recipe_of("bert")), tmp_path)
    model = model_of(Span().recipe(base), base.tokenizer, tmp_path)
    with pytest.raises(UserError, match="cannot re-rank: it gives neither a score nor a label"):
        rerank(model, "rain", ["the doctor"])


def test_another_model_is_refused_by_its_fingerprint_and_a_moved_one_is_found(runs, collection, tmp_path):
    shutil.copytree(runs / "vectors", tmp_path / "run")
    unmask.index(tmp_path / "run", collection, tmp_path / "idx", device="cpu", progress=False)
    said = mistake("search", tmp_path / "idx", "rain", "--run", runs / "other")
    assert "was made by another model" in said
    assert "another model" in mistake("index", runs / "other", collection, "--out", tmp_path / "idx", "--add")
    (tmp_path / "run").rename(tmp_path / "moved")
    assert "name its new place with --run" in mistake("search", tmp_path / "idx", "rain")
    works("search", tmp_path / "idx", "rain", "--run", tmp_path / "moved")


def test_the_command_line_answers_queries_of_a_file_as_json(runs, collection, tmp_path):
    works("index", runs / "vectors", collection, "--out", tmp_path / "idx")
    (tmp_path / "queries.txt").write_text("\n".join(QUERIES))
    ran = works("search", tmp_path / "idx", "--file", tmp_path / "queries.txt", "-k", "2", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["query"] for line in lines] == QUERIES
    assert all(len(line["found"]) == 2 and set(line["found"][0]) == {"id", "text", "score", "cosine"} for line in lines)


@pytest.mark.parametrize(
    "words,expected",
    [
        (["index", "runs/cross", "texts.txt", "--out", "new"], "was not adapted to make vectors"),
        (["index", "runs/vectors", "texts.txt", "--out", "idx"], "exists already"),
        (["index", "runs/vectors", "texts.txt", "--out", "runs", "--overwrite"], "files that are not an index"),
        (["index", "runs/vectors", "texts.txt", "--out", "new", "--kind", "tree"], "flat, ivf or hnsw"),
        (["index", "runs/vectors", "texts.txt", "--out", "new", "--kind", "ivf"], "ivf needs 24,336 vectors"),
        (["index", "runs/vectors", "texts.txt", "--out", "new", "--dims", "99"], "between 1 and the width"),
        (
            ["index", "runs/vectors", "texts.txt", "--out", "idx", "--add", "--dims", "4"],
            "--dims has no effect with --add",
        ),
        (["index", "runs/vectors", "double.jsonl", "--out", "new"], "the id '1' is there twice"),
        (["index", "runs/vectors", "half.jsonl", "--out", "new"], 'half.jsonl, line 2: the text has no "id"'),
        (["search", "new", "rain"], "no index at"),
        (["search", "idx"], "give a QUERY, or queries with --file"),
        (["search", "idx", "rain", "-k", "0"], "k must be 1 or more"),
        (["search", "idx", "rain", "--first", "5"], "how many texts are re-ranked"),
        (["search", "idx", "rain", "--rerank", "runs/vectors"], "cannot re-rank"),
        (["search", "idx", "rain", "--rerank", "runs/cross", "--first", "5"], "must not be below k=10"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(runs, collection, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs, tmp_path / "runs")
    (tmp_path / "double.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n')
    (tmp_path / "half.jsonl").write_text('{"id": 1, "text": "a"}\n{"text": "b"}\n')
    if "idx" in words:
        unmask.index("runs/vectors", collection, "idx", device="cpu", progress=False)
    assert expected in mistake(*words)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("file", ["index.json", "vectors.faiss", "texts.bin", "ids.npy"])
def test_a_damaged_index_is_named(runs, collection, tmp_path, file):
    unmask.index(runs / "vectors", collection, tmp_path / "idx", device="cpu", progress=False)
    raw = (tmp_path / "idx" / file).read_bytes()
    (tmp_path / "idx" / file).write_bytes(raw[: len(raw) // 2])
    said = mistake("search", tmp_path / "idx", "rain")
    assert "make the index again" in said
    (tmp_path / "idx" / file).unlink()
    assert "index" in mistake("search", tmp_path / "idx", "rain")


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_a_fast_index_finds_nearly_all_that_an_exact_one_finds(kind, monkeypatch):
    monkeypatch.setattr(nearest, "FEWEST", 1)
    random = np.random.default_rng(0)
    centres = random.normal(size=(40, 16))
    vectors = (centres[random.integers(40, size=3000)] + 0.3 * random.normal(size=(3000, 16))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found, chosen = nearest.new_nearest(vectors, kind)
    assert chosen == kind
    _, numbers = nearest.search_nearest(found, kind, vectors[:50], 10)
    exact = np.argsort(-(vectors[:50] @ vectors.T), axis=1)[:, :10]
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(numbers, exact, strict=True)]) > 0.9


def test_many_vectors_get_an_index_of_lists(monkeypatch):
    monkeypatch.setattr(nearest, "MANY", 500)
    monkeypatch.setattr(nearest, "FEWEST", 1)
    vectors = np.random.default_rng(0).normal(size=(501, 4)).astype(np.float32)
    assert nearest.new_nearest(vectors, None)[1] == "ivf"
    assert nearest.new_nearest(vectors[:500], None)[1] == "flat"


def test_stored_texts_are_what_was_written(tmp_path):
    write_texts(tmp_path, "t", ["雨", "", "a\nb"])
    stored = StoredTexts(tmp_path, "t")
    (tmp_path / "more").mkdir()
    write_texts(tmp_path / "more", "t", ["é"], before=stored)
    found = StoredTexts(tmp_path / "more", "t")
    assert [found[i] for i in range(len(found))] == ["雨", "", "a\nb", "é"]
