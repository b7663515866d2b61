"""Several trainings for real, on a small model: seeds, folds, curves, class weights, calibration and unsure answers."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from tests.convert.parts import SENTENCES
from unmask import run, tasks, text
from unmask.api.calibrating import if_sure
from unmask.api.model import Model
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.model import save_run
from unmask.tasks import Classify
from unmask.tasks._answers import Found, Number, Several, Tagged
from unmask.tasks._sentences import Sentence
from unmask.tasks.classify import read
from unmask.tasks.multi import LabelledText

WORDS = {"good": "1", "fine": "1", "bad": "0"}
SETTINGS = ["epochs=2", "examples=8", "rate=0.01"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    tokenizer = text.train(text.WordPiece(vocab=58), [*SENTENCES, *WORDS])
    model = base_of("bert", tokenizer, folder / "base")
    save_run(model, folder / "base")
    rows = [
        {"text": f"{word} {n} {SENTENCES[n % 2][:9]}", "label": label}
        for n in range(8)
        for word, label in WORDS.items()
    ]
    for name, some in (("train", rows), ("dev", rows[:9])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    return Model.of(model), folder


def test_seeds_keep_the_best_and_say_so(base, tmp_path):
    model, files = base
    made = model.adapt(
        files / "train.jsonl", tmp_path / "run", dev=files / "dev.jsonl", settings=SETTINGS, seeds=3, progress=False
    )
    best = max(made.trials["trials"], key=lambda one: one["score"])
    assert made.trials["kept_seed"] == best["seed"] == made.recipe.task.trained.seed
    assert made.history[-1]["kept_score"] == best["score"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Seeds" in page
    assert "Calibration" in page
    assert "dev macro F1" in page
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folds_score_every_example_by_a_model_that_has_not_seen_it(base, tmp_path, monkeypatch):
    model, files = base
    seen = []
    monkeypatch.setattr(
        "unmask.adapt.adapt", lambda *a, _real=unmask.adapt.adapt, **k: (seen.append(len(a[1])), _real(*a, **k))[1]
    )
    made = model.adapt(files / "train.jsonl", tmp_path / "run", settings=SETTINGS, folds=3, progress=False)
    assert seen == [16, 16, 16, 24]
    assert len(made.trials["folds"]) == 3
    assert made.trials["together"]["examples"] == 24
    assert made.recipe.task.trained.examples == 24
    with pytest.raises(UserError, match="leave --dev and --seeds out"):
        model.adapt(files / "train.jsonl", tmp_path / "no", dev=files / "dev.jsonl", folds=3, progress=False)


def test_a_label_curve_of_a_file(base, tmp_path):
    model, files = base
    found = model.label_curve(
        files / "train.jsonl",
        tmp_path / "curve",
        sizes="8,all",
        dev=files / "dev.jsonl",
        settings=SETTINGS,
        progress=False,
    )
    assert [(p["labels"], p["start"]) for p in found["points"]] == [
        (8, "pretrained"), (8, "untrained"), (24, "pretrained"), (24, "untrained"),
    ]  # fmt: skip
    assert (tmp_path / "curve" / "report.html").is_file()


def test_a_label_curve_has_the_given_seeds_and_no_vectors_that_are_kept(base, tmp_path, monkeypatch):
    model, files = base
    seen = []
    monkeypatch.setattr(
        "unmask.trials.label_curve", lambda *given: seen.append(given[-1]) or {"metric": "f1", "points": []}
    )
    asked = {"sizes": "8", "dev": files / "dev.jsonl", "progress": False}
    model.label_curve(files / "train.jsonl", tmp_path / "curve", seed=5, seeds=2, settings=SETTINGS, **asked)
    assert seen == [range(5, 7)]
    with pytest.raises(UserError, match="trains from random weights too.*leave tune.cache out"):
        model.label_curve(
            files / "train.jsonl", tmp_path / "no", tune="head", settings=[*SETTINGS, "tune.cache=true"], **asked
        )
    assert not (tmp_path / "no").exists()


def test_plain_text_is_warmed_on_as_its_settings_say(base, tmp_path):
    model, _ = base
    (tmp_path / "t.txt").write_text("\n\n".join(SENTENCES * 20))
    with pytest.raises(UserError, match="set loss=dropout"):
        unmask.warm(model, tmp_path / "t.txt", tmp_path / "no", budget="1steps", task="embed", progress=False)
    asked = {"task": "embed", "settings": ["loss=dropout", "tune.rank=2"], "progress": False}
    assert unmask.warm(model, tmp_path / "t.txt", tmp_path / "run", budget="1steps", **asked).folder.is_dir()


def test_balanced_labels_have_the_weights_of_sklearn_and_change_the_loss(base, tmp_path):
    from sklearn.utils.class_weight import compute_class_weight

    model, files = base
    examples = read(files / "train.jsonl")
    task = Classify(balance=True).learn(examples)
    labels = [example.label for example in examples]
    assert task.weights == pytest.approx(
        compute_class_weight("balanced", classes=np.array(["0", "1"]), y=labels).tolist()
    )
    made = model.adapt(files / "train.jsonl", tmp_path / "run", settings=[*SETTINGS, "balance=true"], progress=False)
    module = made.system.predict["label"]
    scores, truth = torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 1])
    batch = type("Batch", (), {"label": truth})()
    wanted = F.cross_entropy(scores, truth, weight=torch.tensor(task.weights), reduction="none")
    assert torch.allclose(module._losses(scores, batch), wanted)


def test_calibration_changes_probabilities_and_no_label(base, tmp_path):
    model, files = base
    made = model.adapt(files / "train.jsonl", tmp_path / "run", settings=SETTINGS, progress=False)
    texts = [example.text for example in read(files / "dev.jsonl")]
    before = made.predict(texts)
    found = made.calibrate(files / "dev.jsonl")
    opened = unmask.load(tmp_path / "run", device="cpu")
    after = opened.predict(texts)
    assert run.read_recipe(tmp_path / "run").task.temperature == found["temperature"] != 1
    assert [one.label for one in before] == [one.label for one in after]
    assert before[0].probability != pytest.approx(after[0].probability, abs=1e-3)
    again = opened.calibrate(files / "dev.jsonl")
    assert again["temperature"] == pytest.approx(found["temperature"], rel=1e-3)
    assert again["error_before"] == pytest.approx(found["error"], abs=1e-3)


def test_an_unsure_answer_has_no_label(base, tmp_path):
    model, files = base
    made = model.adapt(files / "train.jsonl", tmp_path / "run", settings=SETTINGS, progress=False)
    texts = [example.text for example in read(files / "dev.jsonl")]
    sure = sorted(one.probability for one in made.predict(texts))[len(texts) // 2]
    found = made.predict(texts, threshold=sure)
    assert {one.label == "" for one in found} == {True, False}
    assert all((one.label == "") == (one.probability < sure) for one in found)
    assert all(one.columns(1)["label"] == one.label for one in found)
    with pytest.raises(UserError, match="over 0, at most 1; got 2"):
        made.predict(texts, threshold=2)


def test_unsure_answers_from_a_text_are_empty_and_unsure_labels_of_several_are_left_out():
    found = Found((("the cat", (0, 7), 0.6), ("cat", (4, 7), 0.4)))
    several = Several(("a", "b"), {"a": 0.9, "b": 0.6, "c": 0.1})
    assert [one.columns(1) for one in if_sure([found, found], 0.6)] == [found.columns(1)] * 2
    assert if_sure([found], 0.7)[0].columns(2) == {
        "answer": "", "probability": 0.6, "answer_2": "cat", "probability_2": 0.4,
    }  # fmt: skip
    assert if_sure([several], 0.7)[0].labels == ("a",)
    assert if_sure([several], 0.7)[0].columns(1)["probabilities"] == several.probabilities
    with pytest.raises(UserError, match="this one gives the column 'number'"):
        if_sure([Number(2.0)], 0.7)


def test_the_probability_of_every_tag_is_written_next_to_the_tags():
    tagged = Tagged(("the", "cat"), ("O", "B-X"), (0.75, 0.5), spans=True)
    assert tagged.columns(1) == {"tags": ["O", "B-X"], "probabilities": [0.75, 0.5]}


def test_the_texts_of_a_task_are_read_before_it(base, tmp_path):
    model, files = base
    warmed = unmask.warm(model, files / "train.jsonl", tmp_path / "warm", budget="2steps", progress=False)
    assert warmed.recipe.task is None
    assert warmed.recipe.optimise.rate == pytest.approx(0.2 * model.recipe.optimise.rate)
    before, after = (m.system.backbone.state_dict() for m in (model, warmed))
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_rate_is_suggested_below_the_one_with_the_lowest_loss(base, tmp_path):
    model, files = base
    before = {name: tensor.clone() for name, tensor in model.system.state_dict().items()}
    found = model.find_rate(files / "train.jsonl", tmp_path / "rates", steps=40, settings=SETTINGS, progress=False)
    rates = [point["rate"] for point in found["points"]]
    assert rates[0] == pytest.approx(1e-7)
    assert all(b / a == pytest.approx(rates[1] / rates[0]) for a, b in zip(rates, rates[1:], strict=False))
    lowest = min(found["points"], key=lambda point: point["loss"])["rate"]
    assert found["suggested"] == pytest.approx(lowest / 10, rel=0.5)
    assert lowest > 1e-5  # the small rates do not learn
    assert all(torch.equal(before[name], tensor) for name, tensor in model.system.state_dict().items())
    assert "polyline" in (tmp_path / "rates" / "report.html").read_text()
    assert sorted(path.name for path in (tmp_path / "rates").iterdir()) == ["rates.json", "report.html"]


def test_patience_ends_a_training_that_no_longer_gets_better(base, tmp_path):
    model, files = base
    settings = ["epochs=12", "examples=24", "rate=1e-9"]  # the first epoch is as good as all others
    made = model.adapt(
        files / "train.jsonl",
        tmp_path / "run",
        dev=files / "dev.jsonl",
        settings=[*settings, "patience=2"],
        progress=False,
    )
    last = made.history[-1]
    assert len(last["epochs"]) == 3
    assert (last["early"], last["kept_epoch"]["epoch"], last["done"]) == (True, 1, True)
    assert not (tmp_path / "run" / "state").exists()
    whole = model.adapt(
        files / "train.jsonl", tmp_path / "whole", dev=files / "dev.jsonl", settings=settings, progress=False
    )
    assert len(whole.history[-1]["epochs"]) == 12
    assert not whole.history[-1]["early"]


def test_adapters_of_the_best_seed_find_their_base(base, tmp_path):
    model, files = base
    made = model.adapt(
        files / "train.jsonl", tmp_path / "run", dev=files / "dev.jsonl", settings=SETTINGS, tune="adapters", seeds=2,
        progress=False,
    )  # fmt: skip
    assert len(made.trials["trials"]) == 2
    assert unmask.load(tmp_path / "run", device="cpu").predict("good 1")[0].label in WORDS.values()


def test_a_label_with_one_example_breaks_neither_folds_nor_curves(base, tmp_path):
    model, files = base
    rows = (files / "train.jsonl").read_text() + json.dumps({"text": "rain", "label": "2"}) + "\n"
    (tmp_path / "rare.jsonl").write_text(rows)
    made = model.adapt(tmp_path / "rare.jsonl", tmp_path / "run", settings=SETTINGS, folds=3, progress=False)
    assert made.labels == ("0", "1", "2")
    found = model.label_curve(
        tmp_path / "rare.jsonl",
        tmp_path / "curve",
        sizes="8",
        dev=tmp_path / "rare.jsonl",
        settings=SETTINGS,
        progress=False,
    )
    assert found["points"][0]["deviation"] is None
    assert "NaN" not in (tmp_path / "curve" / "curve.json").read_text()


def test_a_folder_that_exists_is_refused_before_the_folds_are_trained(base, tmp_path, monkeypatch):
    model, files = base
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    monkeypatch.setattr("unmask.adapt.adapt", None)
    with pytest.raises(UserError, match="run"):
        model.adapt(files / "train.jsonl", tmp_path / "run", settings=SETTINGS, folds=3, progress=False)


def test_a_training_stopped_in_a_fold_says_that_nothing_is_written(base, tmp_path):
    model, files = base
    with pytest.raises(UserError, match="stopped before the last fold: nothing is written"):
        model.adapt(
            files / "train.jsonl", tmp_path / "run", settings=SETTINGS, folds=3, stop=lambda: True, progress=False
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words, says", [
    (["--folds", "3", "--curve", "8"], "--folds and --curve do different things"),
    (["--find-rate", "--dev", "dev.jsonl"], "--dev has no effect with --curve or --find-rate"),
    (["--curve", "8", "--fresh"], "--fresh has no effect"),
    (["--find-rate", "--tune", "lora"], "leave --tune out"),
    (["--folds", "3", "--seeds", "2"], "leave --dev and --seeds out"),
    (["--seeds", "2"], "give --dev FILE"),
    (["--fresh", "--warm-text", "2steps"], "--fresh starts from random weights: leave one of them out"),
])  # fmt: skip
def test_options_without_effect_are_refused(base, tmp_path, words, says):
    _, files = base
    assert says in mistake("adapt", files / "base", files / "train.jsonl", "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words, says", [
    (["--seeds", "2"], "give --dev FILE"),
    (["--folds", "100"], "--folds must be between 2 and"),
    (["--curve", "1000", "--dev", "dev"], "--curve takes numbers of examples from 1 to"),
    (["--tune", "lora", "--set", "tune.rank=-1"], "rank"),
    (["--tune", "lora", "--set", "layer_decay=0.5"], "layer_decay"),
    (["--set", "patience=2"], "patience=2 ends the training by the scores on a dev set"),
    (["--set", "length=4000"], "length=4000 is too long"),
    (["--out", "taken"], "taken exists already"),
])  # fmt: skip
def test_options_are_checked_before_the_texts_are_read(base, tmp_path, words, says, monkeypatch):
    _, files = base
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "recipe.json").write_text("{}")
    monkeypatch.setattr(unmask, "warm", None)
    paths = {"dev": files / "dev.jsonl", "taken": tmp_path / "taken"}
    command = ["adapt", files / "base", files / "train.jsonl", "--warm-text", "2steps", "--out", tmp_path / "out"]
    assert says in mistake(*command, *(paths.get(word, word) for word in words))
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("words", [["--folds", 2], ["--seeds", 2, "--dev"], ["--curve", "8", "--dev"]])
def test_tables_name_the_metric(base, tmp_path, words):
    _, files = base
    words = [*words, files / "dev.jsonl"] if words[-1] == "--dev" else words
    command = ["adapt", files / "base", files / "train.jsonl", *(word for one in SETTINGS for word in ("--set", one))]
    said = works(*command, *words, "--out", tmp_path / "run").out
    assert "accuracy" in said
    assert "score" not in said
    page = (tmp_path / "run" / "report.html").read_text()
    assert "deviation of accuracy" in page or "accuracy on the dev set" in page


def test_a_model_is_warmed_and_then_adapted(base, tmp_path):
    _, files = base
    command = ["adapt", files / "base", files / "train.jsonl", "--warm-text", "2steps", "--out", tmp_path / "out"]
    works(*command, *(word for one in SETTINGS for word in ("--set", one)))
    assert unmask.load(tmp_path / "out", device="cpu").labels == ("0", "1")
    assert unmask.load(tmp_path / "out-text", device="cpu").recipe.task is None


def test_the_advice_of_folds_can_be_followed(base, tmp_path):
    model, files = base
    command = ["adapt", files / "base", files / "train.jsonl", *(word for one in SETTINGS for word in ("--set", one))]
    said = works(*command, "--folds", 2, "--out", tmp_path / "folds").err
    assert "the last weights are kept: give --dev and leave --folds out to keep the best epoch" in said
    assert "kept: give --dev to" not in said
    followed = works(*command, "--dev", files / "dev.jsonl", "--out", tmp_path / "dev").err
    assert "is kept, the best of 2: dev accuracy" in followed
    plain = works(*command, "--out", tmp_path / "plain").err
    assert "the last weights are kept: give --dev to keep the best epoch" in plain


def test_folds_suspect_a_wrong_choice_and_the_report_lists_the_surest_mistakes(base, tmp_path):
    """The choice "good" is right in all rows but one, which a model of the others is sure of."""
    model, _ = base
    rows = [
        {"context": SENTENCES[n % 2][:9], "choices": ["bad", "good"][:: 1 - 2 * (n % 2)], "label": "good"}
        for n in range(12)
    ]
    rows[5]["label"] = "bad"
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["epochs=8", "examples=4", "rate=0.01"]
    made = model.adapt(
        tmp_path / "t.jsonl", tmp_path / "run", task="choose", settings=settings, folds=3, progress=False
    )
    (found,) = [json.loads(line) for line in (tmp_path / "run" / "suspects.jsonl").read_text().splitlines()]
    assert found == made.trials["suspects"][0]
    assert (found["label"], found["predicted"], found["where"]) == ("bad", "good", f"{tmp_path / 't.jsonl'}, line 6")
    (tmp_path / "dev.jsonl").write_text(json.dumps(rows[5]) + "\n" + json.dumps(rows[0]) + "\n")
    model.adapt(
        tmp_path / "t.jsonl",
        tmp_path / "one",
        task="choose",
        dev=tmp_path / "dev.jsonl",
        settings=settings,
        progress=False,
    )
    page = (tmp_path / "one" / "report.html").read_text()
    assert "Surest mistakes (1 of 1)" in page
    assert f"<td>{SENTENCES[1][:9]}</td>" in page


def test_the_report_of_a_model_that_finds_answers_lists_its_surest_mistakes(base, tmp_path):
    model, _ = base
    row = {"question": "who?", "context": "the cat sat", "answers": [{"text": "the cat", "start": 0}]}
    wrong = {"question": "what is nowhere?", "context": "the cat sat", "answers": [{"text": "nothing", "start": 0}]}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "dev.jsonl").write_text(json.dumps(wrong) + "\n")
    settings = ["epochs=1", "examples=1"]
    model.adapt(tmp_path / "t.jsonl", tmp_path / "run", dev=tmp_path / "dev.jsonl", settings=settings, progress=False)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Surest mistakes (1 of 1)" in page
    assert "<td>nothing</td>" in page
    assert "<td>what is nowhere?</td>" in page


def test_a_mistake_in_a_sentence_is_the_wrong_tag_that_the_model_is_surest_of():
    task = tasks.Tag().learn([Sentence(("a", "b", "c"), ("O", "B-X", "B-Y"))])
    assert task.labels == ("O", "B-X", "B-Y")
    shares = np.array([[0.9, 0.06, 0.04], [0.3, 0.1, 0.6], [0.5, 0.2, 0.3]], np.float32)
    answer = Tagged(("a", "b", "c"), ("O", "B-Y", "O"), (0.9, 0.6, 0.5), True, shares)
    wrong, right = task.graded(
        [Sentence(answer.words, ("O", "B-X", "B-Y")), Sentence(answer.words, answer.tags)], [answer] * 2
    )
    assert (wrong.answer, wrong.probability, wrong.truth, wrong.right) == ("b: B-Y", 0.6, "b: B-X", False)
    assert wrong.of_truth == pytest.approx(0.1)
    assert (right.answer, right.truth, right.of_truth, right.right) == ("c: O", "c: O", 0.5, True)


def test_a_word_that_the_model_could_not_read_is_no_sure_mistake():
    """It continues the tag before it, with the same probability."""
    task = tasks.Tag().learn([Sentence(("a",), ("O",)), Sentence(("a",), ("B-X",))])
    shares = np.array([[0.9, 0.1], [0.0, 0.0], [0.6, 0.4]], np.float32)
    answer = Tagged(("a", "?", "c"), ("O", "O", "O"), (0.9, 0.9, 0.6), True, shares)
    read, unread = task.graded([Sentence(answer.words, ("O", "B-X", tag)) for tag in ("B-X", "O")], [answer] * 2)
    assert (read.answer, read.of_truth) == ("c: O", pytest.approx(0.4))
    assert (unread.answer, unread.right) == ("?: O", False)  # the only mistake


def test_the_probability_of_several_labels_is_that_of_all_yes_and_no_together():
    task = tasks.Multi(labels=("x", "y"))
    answer = Several(("x",), {"x": 0.8, "y": 0.3})
    given = [LabelledText(Text("a"), None, labels=labels) for labels in ((), ("y", "x"), ("x",))]
    none, both, one = task.graded(given, [answer] * 3)
    assert (none.answer, none.truth, none.right) == ("x", "(no label)", False)
    assert (both.truth, both.right, one.right) == ("x, y", False, True)
    assert none.probability == one.of_truth == pytest.approx(0.8 * 0.7)
    assert (none.of_truth, both.of_truth) == (pytest.approx(0.2 * 0.7), pytest.approx(0.8 * 0.3))


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([{"tokens": ["the", "cat"], "tags": ["O", "B-X"]}, {"tokens": ["a", "dog"], "tags": ["O", "O"]}], ": B-X"),
        ([{"text": "the cat", "labels": ["x", "y"]}, {"text": "a dog", "labels": []}], "(no label)"),
    ],
)
def test_reports_and_folds_list_mistakes_in_tags_and_in_several_labels(rows, shown, base, tmp_path):
    """Dev and the second half of the rows say the opposite of the first half, so a model makes mistakes."""
    model, _ = base
    (one, tag), (other, opposite) = (tuple(row.items()) for row in rows)
    turned = [dict([one, opposite]), dict([other, tag])]
    for name, lines in (("t", [*rows * 2, *turned]), ("dev", turned)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    settings = ["epochs=8", "examples=2", "rate=0.01"]
    given = {"settings": settings, "progress": False}
    model.adapt(tmp_path / "t.jsonl", tmp_path / "run", dev=tmp_path / "dev.jsonl", **given)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Surest mistakes" in page
    assert f"{shown}</td>" in page
    assert "Calibration" in page
    made = model.adapt(tmp_path / "t.jsonl", tmp_path / "folds", folds=2, **given)
    assert {"label", "predicted", "of_label"} <= made.trials["suspects"][0].keys()


def test_reports_and_folds_list_the_largest_errors_of_numbers(base, tmp_path):
    """One row has a number far from that of the same text in all others."""
    model, _ = base
    rows = [{"text": SENTENCES[n % 2], "label": n % 2 + 0.01 * (n % 5)} for n in range(24)]
    rows[5]["label"] = -30.5
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:6]))
    given = {"settings": ["epochs=2", "examples=4", "rate=0.001"], "task": "number", "progress": False}
    model.adapt(tmp_path / "t.jsonl", tmp_path / "run", dev=tmp_path / "dev.jsonl", **given)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Largest errors (6 of 6)" in page
    assert page.index("<td>-30.5</td>") < page.index("<td>0.02</td>")  # the largest first
    assert page.count("<circle") >= 6
    model.adapt(tmp_path / "t.jsonl", tmp_path / "folds", folds=3, **given)
    first = json.loads((tmp_path / "folds" / "suspects.jsonl").read_text().splitlines()[0])
    assert (first["label"], first["where"]) == (-30.5, f"{tmp_path / 't.jsonl'}, line 6")
    assert "<td>-30.5</td>" in (tmp_path / "folds" / "report.html").read_text()
