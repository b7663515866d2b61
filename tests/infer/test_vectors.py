"""Vectors written as an array, as CSV and as JSON lines are the same vectors; another ending is refused."""

import csv
import json

import numpy as np
import pytest

from tests.command import mistake, works
from tests.convert.parts import model_of, recipe_of, tokenizer
from unmask.infer.model import save_run
from unmask.infer.write_vectors import write_vectors

TEXTS = ["the cat, sat", 'a "dog"', "雨"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "bert"
    save_run(model_of(recipe_of("bert"), tokenizer(), folder), folder)
    (folder.parent / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return folder


def test_csv_and_json_lines_hold_the_vectors_of_the_array_to_the_bit(bert, tmp_path):
    for name in ("v.npy", "v.csv", "v.jsonl"):
        works("embed", bert, bert.parent / "texts.txt", "--out", tmp_path / "new" / name)
    vectors = np.load(tmp_path / "new" / "v.npy")
    assert vectors.shape == (3, 16)
    with (tmp_path / "new" / "v.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["text", *(f"v{i}" for i in range(16))]
    assert [row[0] for row in rows] == TEXTS
    assert np.array_equal(np.array([row[1:] for row in rows], dtype=np.float32), vectors)
    lines = [json.loads(line) for line in (tmp_path / "new" / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == TEXTS
    assert np.array_equal(np.array([line["vector"] for line in lines], dtype=np.float32), vectors)


@pytest.mark.parametrize("name", ["v.txt", "v", "v.parquet"])
def test_another_ending_is_refused_before_any_work(bert, tmp_path, name):
    said = mistake("embed", bert.parent / "nowhere", tmp_path / "none.txt", "--out", tmp_path / name)
    assert ".npy, .csv, .jsonl" in said
    assert not (tmp_path / name).exists()


def test_very_small_and_very_large_numbers_are_read_back(tmp_path):
    vectors = np.array([[1e-30, -3.4e38, 0.1]], dtype=np.float32)
    write_vectors(tmp_path / "v.CSV", ["a"], vectors)
    with (tmp_path / "v.CSV").open(newline="") as file:
        assert np.array_equal(np.array([list(csv.reader(file))[1][1:]], dtype=np.float32), vectors)
