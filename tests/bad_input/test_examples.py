"""A file of examples with a mistake is named with its line, and nothing is lost."""

import csv
import gzip
import shutil

import pytest

import unmask
from tests.bad_input.made import examples
from tests.command import mistake, snapshot, works
from tests.conftest import documents
from unmask import tasks
from unmask.infer import open_run
from unmask.tasks import classify
from unmask.tasks._labelled import described
from unmask.tasks.classify import Classify
from unmask.tasks.seen_examples import NOTE


def adapt(bert, file, out, *words, call=mistake):
    return call("adapt", bert, file, "--out", out, "--set", "epochs=1", "--device", "cpu", *words)


def test_a_label_of_dev_that_train_never_had_is_named_and_nothing_is_lost(bert, tmp_path):
    train, dev = examples(tmp_path / "t.jsonl"), examples(tmp_path / "d.jsonl", {"text": "x", "label": "bridge"})
    said = adapt(bert, train, tmp_path / "run", "--dev", dev)
    assert "bridge" in said
    assert "known labels are ['doctor', 'river']" in said
    assert not (tmp_path / "run").exists()
    shutil.copytree(bert, tmp_path / "run")
    before = snapshot(tmp_path / "run")
    adapt(bert, train, tmp_path / "run", "--dev", dev, "--overwrite")
    assert snapshot(tmp_path / "run") == before


def test_a_label_of_test_that_train_never_had_is_named(adapted, tmp_path):
    said = mistake("evaluate", adapted, examples(tmp_path / "d.jsonl", {"text": "x", "label": "bridge"}))
    assert "bridge" in said
    assert "no training example has the label" in said


def test_a_text_longer_than_the_model_is_cut_and_counted(bert, tmp_path):
    long = {"text": " ".join(documents(3)), "label": "river"}
    ran = adapt(bert, examples(tmp_path / "t.jsonl", long, long), tmp_path / "run", call=works)
    assert "2 texts longer than 64 tokens, cut" in ran.err


@pytest.mark.parametrize(
    "name,content,expected",
    [
        ("t.jsonl", '{"text": "x", "label": "a"}\n{"text": "x"}', 'line 2: the example has no "label"'),
        ("t.jsonl", '{"text": "x", "label": null}', 'line 1: the example has no "label"'),
        ("t.jsonl", '{"text": "x", "label": ""}', 'line 1: the example has no "label"'),
        ("t.csv", "text,label\nx,a\nx,\n", 'line 3: the example has no "label"'),
        ("t.csv", "text\nx\n", 'has no "label"'),
        ("t.jsonl", "text,label\nx,a\n", "line 1: this line is not JSON"),
        ("t.txt", "EU B-ORG\nrejects O\n", "give --task tag for CoNLL columns, or --task embed"),
        ("t.csv", '{"text": "x", "label": "a"}\n{"text": "x", "label": "b"}', 'needs "text"'),
        ("t.jsonl", '{"text": "x", "label": "a"}\nx,b\n', "line 2: this line is not JSON"),
        ("t.jsonl", '["x", "a"]', "not a JSON object"),
        ("t.jsonl", '{"text_a": "x", "label": "a"}', '"text_b"'),
        ("t.jsonl", '{"text": "x", "label": "a"}\n{"text_a": "x", "text_b": "y", "label": "b"}', "mixes"),
        ("t.jsonl", '{"text": " ", "label": "a"}', "the text is empty"),
        ("t.jsonl", '{"text": null, "label": "a"}', "line 1"),
        ("t.csv", "label,text\na\n", "line 2"),
        ("t.csv", "text,label\ngood, very good,a\n", "line 2"),
        ("t.jsonl", '{"text": "x", "label": "a"}', "two labels or more"),
        ("t.jsonl", "", "holds no examples"),
    ],
)
def test_a_file_of_examples_with_a_mistake_is_named_with_its_line(bert, tmp_path, name, content, expected):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert expected in adapt(bert, tmp_path / name, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_named(bert, adapted, tmp_path):
    assert "no such file" in adapt(bert, tmp_path / "none.jsonl", tmp_path / "run")
    assert "no such file" in mistake("evaluate", adapted, tmp_path / "none.jsonl")
    assert "no such file" in mistake("embed", bert, tmp_path / "none.txt", "--out", tmp_path / "v.npy")


def test_a_file_of_texts_that_is_missing_is_not_taken_for_a_text(adapted, tmp_path):
    assert "no such file" in mistake("predict", adapted, tmp_path / "none.jsonl")


def test_a_second_text_beside_a_file_is_refused(adapted, tmp_path):
    (tmp_path / "t.txt").write_text("A text.\n")
    assert "second" in mistake("predict", adapted, tmp_path / "t.txt", "And another.").lower()


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv"])
def test_texts_that_are_not_utf8_are_named(bert, tmp_path, name):
    (tmp_path / name).write_bytes('text\n{"text": "Caf\xe9"}\n'.encode("latin-1"))
    said = mistake("embed", bert, tmp_path / name, "--out", tmp_path / "v.npy")
    assert name in said
    assert "UTF-8" in said or "not JSON" in said


@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_gzip_of_examples_is_named(bert, tmp_path, cut):
    raw = gzip.compress(examples(tmp_path / "t.jsonl").read_bytes())
    (tmp_path / "t.jsonl.gz").write_bytes(raw[:-12] if cut else b"plain text")
    assert "t.jsonl.gz is damaged" in adapt(bert, tmp_path / "t.jsonl.gz", tmp_path / "run")


@pytest.mark.parametrize("text", ['"what a film', 'a "great" film', '"good" film', 'they said "no"', '"'])
def test_a_tsv_without_quoting_is_read_as_it_is(tmp_path, text):
    (tmp_path / "t.tsv").write_text(f"text\tlabel\nfine\ta\n{text}\tb\nfine\ta\n", encoding="utf-8")
    found = classify.read(tmp_path / "t.tsv")
    assert [(one.text.a, one.label) for one in found] == [("fine", "a"), (text, "b"), ("fine", "a")]


def test_the_dialect_is_shown(tmp_path):
    (tmp_path / "t.tsv").write_text('text\tlabel\n"what a film\ta\n')
    (tmp_path / "q.csv").write_text('text;label\n"one; two";a\n"three ""four""";b\n')
    assert "the delimiter tab and no quoting: text from" in described(tmp_path / "t.tsv")
    assert 'the delimiter semicolon and the quote ": text from' in described(tmp_path / "q.csv")
    assert [one.text.a for one in classify.read(tmp_path / "q.csv")] == ["one; two", 'three "four"']


@pytest.mark.parametrize(
    ("rows", "texts", "said"),
    [
        (r'''"a \"great\" film, really";a|"plain; text";b''', ['a "great" film, really', "plain; text"], "\\ before a quote inside"),
        ("'it''s; good';'a'|'plain';'b'", ["it's; good", "plain"], "the quote '"),
        (r"'it\'s; good';'a'|'plain';'b'", ["it's; good", "plain"], r"the quote ', with \ before"),
        ("'tis a film';a|plain;b", ["'tis a film'", "plain"], 'the quote "'),
    ],
)  # fmt: skip
def test_the_way_a_csv_is_quoted_is_guessed(tmp_path, rows, texts, said):
    file = tmp_path / "t.csv"
    file.write_text("text;label\n" + rows.replace("|", "\n") + "\n", encoding="utf-8")
    assert [(one.text.a, one.label) for one in classify.read(file)] == list(zip(texts, "ab", strict=True))
    assert said in described(file)


def test_the_dialect_is_shown_for_every_task_that_reads_rows(tmp_path):
    (tmp_path / "t.csv").write_text("anchor,positive\na,b\n")
    for name in ("embed", "rank", "relation", "choose", "span", "write"):
        said = tasks.get(name).described(tmp_path / "t.csv", None)
        assert said == f'{tmp_path}/t.csv is read with the delimiter comma and the quote "', name


def test_a_csv_as_spreadsheets_write_it_is_read(tmp_path):
    """With a byte order mark, quoted commas and line breaks, and a very long field."""
    rows = [("Good, very good.\nReally.", "a"), ("x" * 200_000, "b")]
    with (tmp_path / "t.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    found = classify.read(tmp_path / "t.csv")
    assert [(e.text.a.replace("\r\n", "\n"), e.label) for e in found] == rows


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
def test_tabs_part_the_columns_of_a_tsv(tmp_path, name):
    raw = b"text\tlabel\ngood, very good\ta\n"
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    (example,) = classify.read(tmp_path / name)
    assert (example.text.a, example.label) == ("good, very good", "a")


@pytest.mark.parametrize(
    "setting,expected",
    [
        ("epoch=3", "did you mean epochs"),
        ("epochs=0", "over 0"),
        ("examples=0", "1 or more"),
        ("rate=-1", "over 0"),
        ("pool=median", "one of summary, mean, max, concat"),
        ("dropout=1.5", "dropout"),
        ("warmup=5", "warmup"),
        ("length=1", "length"),
        ("length=10000", "length=10000 is too long for"),
    ],
)
def test_an_impossible_way_to_adapt_is_refused_before_anything_is_written(bert, tmp_path, setting, expected):
    assert expected in adapt(bert, examples(tmp_path / "t.jsonl"), tmp_path / "run", "--set", setting)
    assert not (tmp_path / "run").exists()


def test_an_adaptation_stopped_before_its_first_validation_does_not_claim_to_be_done(bert, tmp_path):
    from unmask.adapt import adapt

    rows = classify.read(examples(tmp_path / "t.jsonl"))
    task = Classify(examples=2, epochs=3)
    model = open_run(bert, device="cpu")
    records = list(adapt(model, rows, tmp_path / "run", dev=rows, task=task, stop=lambda: True))
    assert records[-1]["stopped"]
    assert (tmp_path / "run" / "weights.safetensors").is_file() or not (tmp_path / "run").exists()


def test_test_examples_that_were_trained_on_are_counted(bert, tmp_path):
    train, other = examples(tmp_path / "t.jsonl"), tmp_path / "other.jsonl"
    adapt(bert, train, tmp_path / "run", call=works)
    model, told = unmask.load(tmp_path / "run", device="cpu"), []
    other.write_text('{"text": "a text that is new", "label": "doctor"}\n' + train.read_text().splitlines()[0] + "\n")
    for file in (train, other):
        model.evaluate(file, tell=told.append)
    assert [record["notes"][NOTE] for record in told] == [len(train.read_text().splitlines()), 1]
