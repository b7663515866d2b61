"""`unmask predict` as a user meets it: what is a text and what a file, and answers that other programs read."""

import csv
import io
import json
import sys

import pytest

from tests.adapt.made import base_of, loud
from tests.command import mistake, works
from unmask.infer.model import Model, save_run
from unmask.tasks.classify import Classify

LABELS = ("bad", "fair", "good")
TEXTS = ["The doctor opened the case.", 'A "long"\tbridge', "two\nlines", "the rain " * 12 + "."]


@pytest.fixture(scope="module")
def run(tokenizers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    base = base_of("bert", tokenizers["wordpiece"], folder)
    recipe = Classify(labels=LABELS, texts=1).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3)
    loud(system.predict["label"])
    save_run(Model(system.eval(), recipe, base.tokenizer, folder), folder)
    return folder


def lines(out):
    return list(csv.reader(io.StringIO(out), delimiter="\t"))


def answer(run, text):
    return json.loads(works("predict", run, text, "--json").out)


@pytest.mark.parametrize(
    "text", ["the rain " * 100, "雨" * 300, "a report.txt", "see the end of notes.csv", "x\0y", "data"]
)
def test_a_text_stays_a_text(run, text):
    assert answer(run, text)["text"] == text


def test_what_exists_is_a_file_and_what_looks_like_one_must_exist(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my texts.txt", "texts"):
        (tmp_path / name).write_text("The doctor.\nA river.\n" if name.endswith("txt") else '{"text": "The doctor."}')
        assert answer_count(run, name) == (2 if name.endswith("txt") else 1)
    for name in ("none.txt", "none.csv", "none.jsonl.gz", "folder/none.tsv"):
        said = mistake("predict", run, name)
        assert f"no such file: {name}; to label this text itself, pipe it: echo TEXT | unmask predict RUN -" in said


def answer_count(run, name):
    return len(works("predict", run, name, "--json").out.splitlines())


def test_a_dash_reads_the_standard_input_a_line_a_text(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("The doctor.\r\n\nnone.txt\n"))
    ran = works("predict", run, "-")
    assert [row[2] for row in lines(ran.out)] == ["The doctor.", "none.txt"]
    assert "1 blank line left out (line 2)" in ran.err


def test_the_output_is_tsv_whole_and_unbroken(run, tmp_path):
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    found = lines(works("predict", run, tmp_path / "t.jsonl").out)
    assert [row[2] for row in found] == TEXTS
    for text, (label, probability, _) in zip(TEXTS, found, strict=True):
        expected = answer(run, text)
        assert label == expected["label"]
        assert float(probability) == pytest.approx(max(expected["probabilities"].values()), abs=1e-4)


def test_the_best_labels_come_in_order(run):
    expected = sorted(answer(run, TEXTS[0])["probabilities"].items(), key=lambda pair: -pair[1])
    (row,) = lines(works("predict", run, TEXTS[0], "--top", 3).out)
    assert row[0:6:2] == [label for label, _ in expected]
    assert [float(cell) for cell in row[1:6:2]] == pytest.approx([share for _, share in expected], abs=1e-4)
    top = json.loads(works("predict", run, TEXTS[0], "--top", 2, "--json").out)["top"]
    assert [(one["label"], one["probability"]) for one in top] == expected[:2]
    assert "--top 4 is more than the 3 labels" in mistake("predict", run, TEXTS[0], "--top", 4)
    assert "--top must be 1 or more" in mistake("predict", run, TEXTS[0], "--top", 0)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_file_of_answers_keeps_the_columns_of_the_input(run, tmp_path, suffix):
    rows = [{"id": i, "text": text, "tags": ["x", i]} for i, text in enumerate(TEXTS)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "new" / f"out.{suffix}"
    assert "4 texts, written to" in works("predict", run, tmp_path / "t.jsonl", "--out", out, "--top", 2).err
    if suffix == "jsonl":
        found = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["tags"] for row in found] == [["x", i] for i in range(4)]
    else:
        with out.open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file, delimiter="\t" if suffix == "tsv" else ","))
        assert [row["tags"] for row in found] == [json.dumps(["x", i]) for i in range(4)]
    assert list(found[0]) == ["id", "text", "tags", "label", "probability", "label_2", "probability_2"]
    for text, row in zip(TEXTS, found, strict=True):
        expected = answer(run, text)["probabilities"]
        assert row["text"] == text
        assert float(row["probability_2"]) == pytest.approx(sorted(expected.values())[-2], abs=1e-5)
        assert expected[row["label"]] == max(expected.values())
    assert "exists already" in mistake("predict", run, TEXTS[0], "--out", out)
    works("predict", run, TEXTS[0], "--out", out, "--overwrite")


def test_true_labels_of_the_input_are_kept_next_to_the_answers(run, tmp_path):
    (tmp_path / "t.csv").write_text("text;label\nThe doctor.;0.5\nA river.;\n")
    works("predict", run, tmp_path / "t.csv", "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["text", "label", "predicted_label", "predicted_probability"]
    assert [row["label"] for row in found] == ["0.5", ""]
    assert {row["predicted_label"] for row in found} <= set(LABELS)


def test_what_cannot_be_written_or_read_is_refused(run, tmp_path):
    assert "answers are written as .csv, .tsv, .jsonl" in mistake("predict", run, "x", "--out", tmp_path / "x.xlsx")
    assert "the text is empty" in mistake("predict", run, "  ")
    assert "--text names a column of a file" in mistake("predict", run, "a text", "--text", "review")
