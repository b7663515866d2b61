"""What adapting tells: the scores of each epoch, the baseline, which epoch is kept, and a model that has learnt nothing."""

import csv
import json

import numpy as np
import pytest

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from unmask import screen
from unmask.adapt import adapt
from unmask.adapt.epochs import Epochs
from unmask.data.examples import Text
from unmask.evaluate import evaluate_examples
from unmask.infer.model import open_run, save_run
from unmask.tasks._sentences import Sentence
from unmask.tasks.classify import Classify, Example
from unmask.tasks.tag import Tag

WORDS = {"a": "the doctor opened the case", "b": "every window near London", "c": "three valves"}
TRAIN = [Example(Text(f"{text} {i % 3}"), label) for i in range(8) for label, text in WORDS.items()][:23]
DEV = [Example(Text(text), label) for label, text in WORDS.items()] + [Example(Text(WORDS["b"] + "."), "b")]


@pytest.fixture
def base(tokenizers, tmp_path):
    return base_of("bert", tokenizers["wordpiece"], tmp_path / "base")


def test_every_epoch_has_its_loss_and_scores_and_the_best_is_kept(base, tmp_path):
    task = Classify(epochs=6, examples=4, rate=3e-3)
    records = list(adapt(base, TRAIN, tmp_path / "run", dev=DEV, task=task))
    ends = [record for record in records if "epoch" in record]
    assert [record["epoch"] for record in ends] == [1, 2, 3, 4, 5, 6]
    assert [record["step"] for record in ends] == [6, 12, 18, 24, 30, 36]
    last, steps = records[-1], [record for record in records if "step" in record]
    assert last["done"]
    for number, (end, epoch) in enumerate(zip(ends, last["epochs"], strict=True)):
        mine = [record for record in steps if number * 6 < record["step"] <= end["step"]]
        before = [0, *(record["step"] for record in steps)]
        weights = [record["step"] - before[steps.index(record)] for record in mine]
        assert (
            epoch["loss"] == end["epoch_loss"] == pytest.approx(np.average([r["loss"] for r in mine], weights=weights))
        )
        assert (epoch["dev_accuracy"], epoch["dev_macro_f1"]) == (
            end["validation_accuracy"],
            end["validation_macro_f1"],
        )
    accuracies = [epoch["dev_accuracy"] for epoch in last["epochs"]]
    assert last["kept_epoch"] == last["epochs"][int(np.argmax(accuracies))]
    assert [end["kept"] for end in ends] == [a > max(accuracies[:i], default=-1) for i, a in enumerate(accuracies)]
    found = evaluate_examples(open_run(tmp_path / "run", device="cpu"), DEV)
    assert found["accuracy"] == last["kept_epoch"]["dev_accuracy"]
    assert found["macro_f1"] == last["kept_epoch"]["dev_macro_f1"]
    history = unmask.load(tmp_path / "run", device="cpu").history
    assert history == records


def test_the_baseline_is_the_most_frequent_label(base, tmp_path):
    from sklearn.dummy import DummyClassifier

    for number, (dev, of) in enumerate(((DEV, "dev"), ((), "train"))):
        task = Classify(epochs=1, examples=8)
        first, *_, last = adapt(base, TRAIN, tmp_path / str(number), dev=dev, task=task)
        labels = [example.label for example in dev or TRAIN]
        dummy = DummyClassifier().fit([[0]] * len(labels), labels)
        assert first["baseline_of"] == of
        assert first["baseline"] == last["baseline"]
        assert first["baseline"]["accuracy"] == pytest.approx(dummy.score([[0]] * len(labels), labels))
        assert first["baseline"]["label"] == ("b" if dev else "a")


@pytest.mark.parametrize("dev", [DEV, ()])
def test_a_model_that_gives_one_label_only_is_told(base, tmp_path, dev):
    lazy = [Example(Text(WORDS["a"]), "a")] * 40 + [Example(Text(WORDS["b"]), "b"), Example(Text("three"), "c")]
    records = list(adapt(base, lazy, tmp_path / "run", dev=dev, task=Classify(epochs=2, rate=1e-4)))
    where = "4 dev texts" if dev else "42 training texts"
    assert f"one label is predicted for all {where}: " in records[-1]["notices"][0]
    good = list(adapt(base, TRAIN, tmp_path / "good", dev=dev, task=Classify(epochs=6, examples=4, rate=3e-3)))
    assert good[-1]["notices"] == []


def test_fewer_examples_than_a_step_takes_are_read_as_often_as_asked(base, tmp_path):
    records = list(adapt(base, TRAIN[:5], tmp_path / "run", task=Classify(epochs=3)))
    assert (records[0]["steps"], records[-1]["step"], records[-1]["epoch"]) == (3, 3, 3)


def test_a_part_of_an_epoch_is_an_epoch_too():
    epochs, found = Epochs(4), []
    for step in (1, 3, 4, 6):
        record = {"step": step, "loss": float(step), "validation_score": 1.0} | ({"done": True} if step == 6 else {})
        found.append(epochs.seen(record))
    assert [record.get("epoch") for record in found] == [None, None, 1, 1.5]
    assert found[2]["epoch_loss"] == pytest.approx((1 + 3 * 2 + 4) / 4)
    assert found[3]["epoch_loss"] == 6
    assert [found[2]["kept"], found[3]["kept"]] == [True, False]  # the first of two that are equal


def saved(base, tmp_path, rows):
    save_run(base, tmp_path / "base")
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": e.text.a, "label": e.label}) for e in rows))
    return ("adapt", tmp_path / "base", tmp_path / "t.jsonl", "--out", tmp_path / "run", "--device", "cpu",
            "--set", "epochs=2", "--overwrite")  # fmt: skip


def test_the_command_line_says_it_line_by_line(base, tmp_path):
    words = saved(base, tmp_path, TRAIN)
    first, *said = works(*words, "--dev", tmp_path / "t.jsonl").err.splitlines()
    assert first.startswith("note: 23 of 23 dev examples have the same text as a training example")
    assert said[0].startswith(
        "23 examples, 2 epochs of 1 step, rate 0.0024, weight decay 0.01, texts of up to 48 tokens"
    )
    assert said[1] == "baseline: always saying 'a' has dev accuracy 0.348"
    assert [line.split(":")[0] for line in said[2:4]] == ["epoch 1", "epoch 2"]
    assert all("loss " in line and "dev accuracy " in line and "dev macro F1 " in line for line in said[2:4])
    assert "is kept, the best of 2: dev accuracy" in said[4]
    assert "the last weights are kept: give --dev" in works(*words).err
    result = json.loads(works(*words, "--dev", tmp_path / "t.jsonl", "--json").out)
    assert {"kept_epoch", "epochs", "baseline"} <= result.keys()


def test_evaluate_says_that_one_label_is_given_to_all(base, tmp_path):
    words = saved(
        base, tmp_path, [Example(Text(text), label) for text, label in (("the river", "a"), ("every window", "b"))]
    )
    works(*words)
    same = [Example(Text("three valves"), label) for label in "aab"]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": e.text.a, "label": e.label}) for e in same))
    assert (
        "note: one label is predicted for all 3 texts: '"
        in works("evaluate", tmp_path / "run", tmp_path / "t.jsonl").err
    )


def test_choices_have_their_chance_for_a_baseline(base, tmp_path):
    words = saved(base, tmp_path, TRAIN)
    rows = [{"context": "x", "choices": ["a", "b"], "label": 0}, {"context": "y", "choices": list("abcd"), "label": 1}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows * 4)))
    assert "choosing at random has train accuracy 0.375" in works(*words, "--task", "choose").err


@pytest.mark.parametrize("count", [10, 11])
def test_many_labels_have_a_table_each_and_the_matrix_goes_to_a_file(base, tmp_path, count):
    labels = [f"topic {i:02}" for i in range(count)]
    rows = [Example(Text(f"{WORDS['a']} {i}"), label) for i, label in enumerate(labels)] * 2
    works(*saved(base, tmp_path, rows))
    ran = works("evaluate", tmp_path / "run", tmp_path / "t.jsonl", "--confusion", tmp_path / "m.csv")
    scores = json.loads(works("evaluate", tmp_path / "run", tmp_path / "t.jsonl", "--json").out)
    assert ("truth in rows" in ran.out) == (count == 10)
    assert ("precision" in ran.out and "support" in ran.out and "worst confusions" in ran.out) == (count == 11)
    assert "macro F1" in ran.out
    with (tmp_path / "m.csv").open(newline="") as file:
        table = list(csv.reader(file))
    assert table[0] == ["truth", *labels]
    assert [[int(cell) for cell in row[1:]] for row in table[1:]] == scores["confusion"]
    assert "written as .csv" in mistake("evaluate", tmp_path / "run", tmp_path / "t.jsonl", "--confusion", "m.png")


def test_a_long_text_is_one_example_in_several_rows(base, tmp_path):
    long = Sentence(tuple(["the", "doctor"] * 30), tuple(["O", "B-X"] * 30))
    start = next(iter(adapt(base, [long, long], tmp_path / "run", task=Tag(epochs=1, length=24))))
    assert (start["examples"], start["rows"] > 2) == (2, True)
    assert screen.adapting(start).startswith(f"2 examples in {start['rows']} rows, 1 epoch of")


def test_what_is_saved_alone_is_opened_on_the_base_that_is_in_memory(base, tmp_path):
    save_run(base, base.folder)
    model = unmask.load(base.folder, device="cpu")
    train = tmp_path / "t.jsonl"
    train.write_text("".join(json.dumps({"text": e.text.a, "label": e.label}) + "\n" for e in TRAIN))
    made = model.adapt(train, tmp_path / "run", tune="lora", settings=["epochs=1"], progress=False)
    mine, theirs = (one.system.backbone.embed.token.weight for one in (made, model))
    assert mine.data_ptr() == theirs.data_ptr()
