"""Files of examples: columns by name, delimiters guessed, and wrong data named with its file and line."""

import csv
import io
import json

import pytest

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from unmask import tasks
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.model import save_run
from unmask.tasks.classify import Classify, Columns, Example, described, label_numbers, read

GOOD = [("The doctor slept.", "a"), ("A river.", "b")] * 4


@pytest.fixture(scope="module")
def base(tokenizers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "base"
    save_run(base_of("bert", tokenizers["wordpiece"], folder), folder)
    return folder


def adapted(base, folder, pair):
    names = ("text_a", "text_b") if pair else ("text",)
    rows = [dict.fromkeys(names, text) | {"label": label} for text, label in GOOD]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    works("adapt", base, folder / "t.jsonl", "--out", folder / "run", "--set", "epochs=1", "--device", "cpu")
    return folder / "run"


@pytest.fixture(scope="module")
def single(base, tmp_path_factory):
    return adapted(base, tmp_path_factory.mktemp("single"), False)


@pytest.fixture(scope="module")
def pairs(base, tmp_path_factory):
    return adapted(base, tmp_path_factory.mktemp("pairs"), True)


def line(**row):
    return json.dumps(row)


@pytest.mark.parametrize(
    "name,content,expected",
    [
        ("t.jsonl", line(text="x", label=0.5), r"line 1: the label 0.5 is a number with a decimal point.* in quotes in JSON lines"),
        ("t.jsonl", line(text="x", label="a") + "\n" + line(text="x", label=3.7), "line 2: the label 3.7 is a number"),
        ("t.jsonl", line(text="x", label=1.0), r"line 1: the label 1.0 is a class number with a decimal point; .*write 1 .*astype"),
        ("t.jsonl", line(text="x", label=float("nan")), "line 1: the label nan is a number with a decimal point"),
        ("t.csv", "text,label\nx,a\nx,2.0\n", r"line 3: the label 2.0 is a class number with a decimal point.*write 2 "),
        ("t.csv", "text,label\nx,3.7\n", "line 2: the label 3.7 is a number with a decimal point"),
        ("t.csv", "text,label\nx,.5\n", "line 2: the label .5 is a number with a decimal point"),
        ("t.jsonl", line(text="x", label=["a", "b"]), r"line 1: the label is a list, \['a', 'b'\]"),
        ("t.jsonl", line(text="x", label={"a": 1}), "line 1: the label is a dict"),
        ("t.jsonl", line(text="x", label=None), 'line 1: the example has no "label"'),
        ("t.jsonl", line(text="x", label=" a"), "line 1: the label ' a' has spaces around it"),
        ("t.csv", "text,label\nx,a\ny, b\n", "line 3: the label ' b' has spaces around it"),
        ("t.csv", "text,label\nx,  \n", "line 2: the label '  ' has spaces around it"),
        ("t.jsonl", line(text="", label="a"), "line 1: the text is empty or not a string: 'text' is ''"),
        ("t.jsonl", line(text=["x"], label="a"), r"line 1: the text is empty or not a string: 'text' is \['x'\]"),
        ("t.csv", 'text,label\n"two\nlines",a\n"and\nmore",\n', 'line 4: the example has no "label"'),
        ("t.csv", 'text,label\n"never closed,a\nx, y,b\n', "line 2: unexpected end of data: put quotes around a text"),
        ("t.tsv", 'text\tlabel\n"great" film\ta\nx\ty\tb\nx\tb\n', "line 2: .* expected after '\"': put quotes around a text"),
        ("t.csv", "text,text,label\nx,y,a\n", "two columns have the name 'text'"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_file_and_line(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=expected) as raised:
        read(tmp_path / name)
    assert str(raised.value).startswith(str(tmp_path / name))


def test_words_and_whole_numbers_are_labels(tmp_path):
    values = ["good", 1, "2", "3.7", "v2.0", True]
    (tmp_path / "t.jsonl").write_text("\n".join(line(text="x", label=value) for value in values))
    assert [example.label for example in read(tmp_path / "t.jsonl")] == ["good", "1", "2", "3.7", "v2.0", "True"]
    (tmp_path / "t.csv").write_text("text,label\nx,1\ny,v2.0\n")
    assert [example.label for example in read(tmp_path / "t.csv")] == ["1", "v2.0"]


def test_where_labels_are_not_read_they_may_be_anything(tmp_path):
    (tmp_path / "t.jsonl").write_text(line(text="x", label=0.5) + "\n" + line(text="y"))
    assert [example.text.a for example in read(tmp_path / "t.jsonl", labelled=False)] == ["x", "y"]


def test_a_label_that_training_never_had_is_named_with_its_line(tmp_path):
    (tmp_path / "d.csv").write_text("text,label\nx,a\ny,c\n")
    with pytest.raises(
        UserError, match=r"d.csv, line 3: no training example has the label 'c'; the known labels are \['a', 'b'\]"
    ):
        label_numbers(read(tmp_path / "d.csv"), ["a", "b"], "dev")
    with pytest.raises(UserError, match="dev: no training example has the label 'c'"):
        label_numbers([Example(Text("x"), "c")], ["a", "b"], "dev")


@pytest.mark.parametrize("delimiter,name", [(",", "comma"), ("\t", "tab"), (";", "semicolon")])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_columns_are_read_by_name_and_the_delimiter_is_guessed(tmp_path, delimiter, name, suffix):
    rows = [("id", "my review", "stars"), ("1", 'good; very, "good"\tfilm\n!', "5"), ("2", "bad", "1")]
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(rows)
    (tmp_path / f"t.{suffix}").write_text(written.getvalue(), newline="")
    columns = Columns.of("my review", "stars")
    found = read(tmp_path / f"t.{suffix}", columns)
    assert [(e.text, e.label) for e in found] == [(Text(text), label) for _, text, label in rows[1:]]
    assert found[0].row == dict(zip(rows[0], rows[1], strict=True))
    assert [e.where for e in found] == [f"{tmp_path}/t.{suffix}, line {number}" for number in (2, 4)]
    told = f"t.{suffix} is read with the delimiter {name} and the quote \": text from 'my review', label from 'stars'"
    assert str(described(tmp_path / f"t.{suffix}", columns)).endswith(told)


def test_a_pair_has_two_columns_and_a_text_one(tmp_path):
    (tmp_path / "t.jsonl").write_text(line(question="q", reply="r", text="t", label="a"))
    assert read(tmp_path / "t.jsonl", Columns.of(["question", "reply"]))[0].text == Text("q", "r")
    assert read(tmp_path / "t.jsonl", Columns.of("reply"))[0].text == Text("r")
    assert read(tmp_path / "t.jsonl")[0].text == Text("t")
    assert described(tmp_path / "t.jsonl") is None
    with pytest.raises(UserError, match="one or two texts, got 3 columns"):
        Columns.of(["a", "b", "c"])


@pytest.mark.parametrize(
    "columns,expected",
    [
        (Columns.of("reviews"), "line 2: there is no column 'reviews'; the columns are 'review', 'stars'"),
        (Columns.of("review", "label"), "line 2: the example has no \"label\"; the columns are 'review', 'stars': .*--label NAME"),
        (Columns(), "line 2: an example needs \"text\", .*; the columns are 'review', 'stars': name the column to read with --text NAME"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there_lists_those_that_are(tmp_path, columns, expected):
    (tmp_path / "t.csv").write_text("review,stars\nx,1\n")
    with pytest.raises(UserError, match=expected):
        read(tmp_path / "t.csv", columns)


def test_from_the_command_line_and_in_python_columns_have_names(base, tmp_path):
    (tmp_path / "t.csv").write_text("stars;review\n" + "".join(f"{label};{text}\n" for text, label in GOOD))
    named = ("--text", "review", "--label", "stars")
    words = ("adapt", base, tmp_path / "t.csv", "--set", "epochs=1", "--device", "cpu")
    ran = works(*words, *named, "--dev", tmp_path / "t.csv", "--out", tmp_path / "run")
    told = "is read with the delimiter semicolon and the quote \": text from 'review'"
    assert told in ran.err
    assert told in works("evaluate", tmp_path / "run", tmp_path / "t.csv", *named).err
    assert told in works("predict", tmp_path / "run", tmp_path / "t.csv", "--text", "review").err
    assert "the columns are 'stars', 'review'" in mistake("evaluate", tmp_path / "run", tmp_path / "t.csv")
    assert "--text and --label name the columns of --task classify" in mistake(
        *words, *named, "--task", "write", "--out", tmp_path / "w"
    )
    assert "was not adapted to any" in mistake("evaluate", base, tmp_path / "t.csv", *named)
    model = unmask.load(base, device="cpu").adapt(
        tmp_path / "t.csv", tmp_path / "python", text="review", label="stars", task=Classify(epochs=1)
    )
    assert model.evaluate(tmp_path / "t.csv", text="review", label="stars")["examples"] == 8


def test_a_text_is_not_read_by_a_model_of_pairs_nor_a_pair_by_one_of_texts(single, pairs, tmp_path):
    (tmp_path / "one.jsonl").write_text(line(text="x", label="a"))
    (tmp_path / "two.jsonl").write_text(line(text_a="x", text_b="y", label="a"))
    for verb in ("evaluate", "predict"):
        said = mistake(verb, pairs, tmp_path / "one.jsonl")
        assert f"one.jsonl, line 1: the example has one text, but {pairs} reads pairs: give two texts" in said
        said = mistake(verb, single, tmp_path / "two.jsonl")
        assert f"two.jsonl, line 1: the example has two texts, but {single} reads one: give one text" in said
        works(verb, pairs, tmp_path / "two.jsonl")
        works(verb, single, tmp_path / "one.jsonl")
    assert "reads pairs" in mistake("predict", pairs, "a text")
    assert "reads one" in mistake("predict", single, "a text", "another")
    with pytest.raises(UserError, match="text number 2 of 2: the example has one text, but"):
        unmask.load(pairs, device="cpu").predict([("a", "b"), "c"])


def test_dev_examples_are_of_the_kind_of_the_training_examples(base, tmp_path):
    (tmp_path / "t.jsonl").write_text("\n".join(line(text=text, label=label) for text, label in GOOD))
    (tmp_path / "d.jsonl").write_text(line(text_a="x", text_b="y", label="a"))
    said = mistake("adapt", base, tmp_path / "t.jsonl", "--dev", tmp_path / "d.jsonl", "--out", tmp_path / "run")
    assert "d.jsonl, line 1: the example has two texts, but the first training example reads one" in said
    assert not (tmp_path / "run").exists()


def test_labels_with_one_example_and_dev_texts_that_are_trained_on_are_told(base, tmp_path):
    rows = [{"text": f"text {n}", "label": label} for n, label in enumerate("aabbc")]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, [*rows[:2], {"text": "new", "label": "a"}])))
    said = works(
        "adapt",
        base,
        tmp_path / "t.jsonl",
        "--dev",
        tmp_path / "d.jsonl",
        "--out",
        tmp_path / "run",
        "--set",
        "epochs=1",
    ).err
    assert "a label has only one training example: 'c'; a model cannot learn a label from one example" in said
    assert "2 of 3 dev examples have the same text as a training example" in said


def test_parquet_is_read_like_json_lines(base, tmp_path):
    import pyarrow
    import pyarrow.parquet

    rows = [{"text": f"text {n}", "label": label} for n, label in enumerate("abab")]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert [(e.text.a, e.label, e.where) for e in read(tmp_path / "t.parquet")][:2] == [
        ("text 0", "a", f"{tmp_path / 't.parquet'}, line 1"), ("text 1", "b", f"{tmp_path / 't.parquet'}, line 2"),
    ]  # fmt: skip
    works("adapt", base, tmp_path / "t.parquet", "--out", tmp_path / "run", "--set", "epochs=1")
    assert json.loads(works("evaluate", tmp_path / "run", tmp_path / "t.parquet", "--json").out)["examples"] == 4
    (tmp_path / "bad.parquet").write_bytes(b"text")
    assert "bad.parquet is not a parquet file, or is damaged" in mistake(
        "evaluate", tmp_path / "run", tmp_path / "bad.parquet"
    )


@pytest.mark.parametrize(
    ("content", "columns", "kind"),
    [
        ("EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER\n", Columns(), "tag"),
        ('-DOCSTART-\t-X-\tO\tO\n\n"\tPUNCT\tO\tO\nEU\tNNP\tO\tB-ORG\n\nPeter\tNNP\tO\tB-PER\n', Columns(), "tag"),
        ("EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER\n", Columns(("EU",), "B-ORG"), None),
        ("text\tlabel\n好\t1\n\n坏\t0\n", Columns(), "classify"),
        ("text\tlabel\na good film\t1\na bad film\t0\n", Columns(), "classify"),
        ("sentence\tstars\na good film\t1\n\na bad film\t0\n", Columns(), None),
    ],
)
def test_conll_columns_in_a_tsv_file_are_no_table(content, columns, kind, tmp_path):
    (tmp_path / "c.tsv").write_text(content)
    assert tasks.kind_of(tmp_path / "c.tsv", columns) == kind


def test_conll_columns_are_adapted_to_without_the_name_of_the_task(base, tmp_path):
    (tmp_path / "c.tsv").write_text("EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER\n")
    made = works("adapt", base, tmp_path / "c.tsv", "--out", tmp_path / "run", "--set", "epochs=1")
    assert "is read as --task tag" in made.err
    assert unmask.load(tmp_path / "run", device="cpu").labels == ("O", "B-ORG", "B-PER")
