"""Trials with a training that is only pretended: which examples, seeds and folders it gets, and what is kept."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from unmask.errors import UserError
from unmask.tasks import Choose, Classify, Embed, Number, Prediction, Rank, Span
from unmask.tasks._answers import Found
from unmask.tasks._answers import Number as Predicted
from unmask.tasks._compared import Compared
from unmask.tasks._questions import Asked
from unmask.tasks.choose import Question
from unmask.tasks.embed import Similarity
from unmask.tasks.rank import Candidate
from unmask.trials import draw_curve, label_curve, parse_sizes, suspect_columns, try_seeds
from unmask.trials.folds import far_numbers, split, suspects


@dataclass(frozen=True)
class Row:
    text: str
    label: str
    where: str = "file, line 1"

    @property
    def shown(self):
        return (self.text,)


ROWS = [Row(f"text {i}", "ab"[i % 3 == 0]) for i in range(30)]


class Pretended:
    """Scores by seed; remembers its trials."""

    def __init__(self, scores, stop_at=None):
        self.scores, self.seen, self.stop_at = scores, [], stop_at

    def __call__(self, trial):
        self.seen.append(trial)
        trial.out.mkdir(parents=True)
        (trial.out / "seed").write_text(str(trial.seed))
        score = self.scores[trial.seed] - trial.fresh * 0.1
        stopped = {"stopped": True} if len(self.seen) == self.stop_at else {}
        return {"kept_score": score, "kept_epoch": {"epoch": 1, "dev_accuracy": score}} | stopped


def test_the_best_seed_is_kept_and_the_others_leave_nothing_behind(tmp_path):
    adapt = Pretended([0.5, 0.8, 0.7])
    found = try_seeds(adapt, ROWS, ROWS[:3], tmp_path / "run", [0, 1, 2])
    assert (tmp_path / "run" / "seed").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert found["kept_seed"] == 1
    assert found["mean"] == pytest.approx(2 / 3)
    assert found["deviation"] == pytest.approx(np.std([0.5, 0.8, 0.7], ddof=1))
    assert [one["seed"] for one in found["trials"]] == [0, 1, 2]


def test_the_scores_of_seeds_and_curves_are_those_of_a_named_metric(tmp_path):
    def adapt(trial):
        trial.out.mkdir(parents=True)
        return {"kept_score": -6.0 - trial.seed, "kept_epoch": {"epoch": 1, "loss": 1, "dev_loss": 6.0 + trial.seed}}

    seeds = try_seeds(adapt, ROWS, ROWS[:3], tmp_path / "run", [0, 1])
    assert (seeds["metric"], seeds["mean"], seeds["kept_seed"]) == ("loss", 6.5, 0)
    curve = label_curve(adapt, ROWS, ROWS[:3], tmp_path / "curve", [5], [0, 1])
    assert (curve["metric"], curve["points"][0]["scores"]) == ("loss", [6.0, 7.0])


def test_a_stopped_seed_does_not_count(tmp_path):
    found = try_seeds(Pretended([0.5, 0.8, 0.7], stop_at=2), ROWS, ROWS[:3], tmp_path / "run", [0, 1, 2])
    assert found["stopped"]
    assert (tmp_path / "run" / "seed").read_text() == "0"
    assert len(found["trials"]) == 1


def test_seeds_without_a_dev_set_are_refused(tmp_path):
    with pytest.raises(UserError, match="give --dev FILE"):
        try_seeds(Pretended([0.5]), ROWS, [], tmp_path / "run", [0])


def test_folds_hold_every_example_once_and_every_label_evenly():
    labels = [row.label for row in ROWS]
    parts = split(labels, 5, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(30))
    assert [sum(ROWS[i].label == "b" for i in part) for part in parts] == [2] * 5
    assert any((a != b).any() for a, b in zip(parts, split(labels, 5, seed=4), strict=True))
    with pytest.raises(UserError, match="between 2 and the number of examples, 30; got 1"):
        split(labels, 1, seed=0)


def test_all_passages_of_a_query_are_in_one_fold_and_queries_with_a_relevant_one_are_spread_evenly():
    passages = [Candidate(f"query {n % 8}", f"passage {n}", float(n == n % 4)) for n in range(40)]
    parts = split(Rank().kinds(passages), 2, 0, Rank().groups(passages))
    assert np.sort(np.concatenate(parts)).tolist() == list(range(40))
    queries = [{passages[n].query for n in part} for part in parts]
    assert not queries[0] & queries[1]
    assert [sum(bool(passages[n].relevance) for n in part) for part in parts] == [2, 2]
    with pytest.raises(
        UserError, match=r"number of groups of examples that belong together \(about the same text or query\), 8; got 9"
    ):
        split(Rank().kinds(passages), 9, 0, Rank().groups(passages))


def test_all_questions_about_one_text_are_in_one_fold():
    asked = [Asked("who?", f"text {n % 6}", ()) for n in range(24)]
    row = {"question": "who?", "choices": ["x", "y"]}
    chosen = [Question("", ("x", "y"), 0, row=row | {"context": f"text {n % 6}"}) for n in range(24)]
    for task, examples in ((Span(), asked), (Choose(), chosen)):
        parts = split(task.kinds(examples), 3, 0, task.groups(examples))
        texts = [{n % 6 for n in part} for part in parts]
        assert [len(some) for some in texts] == [2, 2, 2]
        assert set.union(*texts) == {*range(6)}
    assert Choose().groups([Question("the same", ("x", "y"), 0)] * 3) == [[0], [1], [2]]  # no text but the question


def test_labels_are_suspected_only_if_the_model_is_surer_of_another_than_usual():
    rows = [Row("fine", "a"), Row("wrong", "a"), Row("unsure", "a"), Row("other", "b"), Row("other", "b")]
    shares = [0.9, 0.05, 0.45, 0.2, 0.3]  # of a
    answers = [Prediction("a" if p > 0.5 else "b", {"a": p, "b": 1 - p}) for p in shares]
    found = suspects(rows, Classify(labels=("a", "b")).graded(rows, answers), classes=True)
    assert [(one["text"], one["label"], one["predicted"]) for one in found] == [
        ("wrong", "a", "b")
    ]  # b is usually given 0.75
    assert (found[0]["probability"], found[0]["of_label"]) == (0.95, 0.05)
    assert suspects(rows, (), classes=False) == []  # a task whose answers are not right or wrong


def test_answers_without_classes_are_suspected_if_the_model_is_surer_than_it_usually_is_of_the_right_one():
    questions = [Question(f"question {i}", ("x", "y", "z"), label) for i, label in enumerate([0, 1, 1, 2])]
    shares = [(0.8, 0.1, 0.1), (0.9, 0.05, 0.05), (0.35, 0.33, 0.32), (0.1, 0.2, 0.7)]
    answers = [
        Prediction(max("xyz", key=dict(zip("xyz", row, strict=True)).get), dict(zip("xyz", row, strict=True)))
        for row in shares
    ]
    graded = Choose().graded(questions, answers)
    assert [(one.answer, one.truth, one.right) for one in graded] == [
        ("x", "x", True),
        ("x", "y", False),
        ("x", "y", False),
        ("z", "z", True),
    ]
    found = suspects(questions, graded, classes=False)  # the right choice is usually given 0.47
    assert [(one["text"], one["label"], one["predicted"], one["of_label"]) for one in found] == [
        ("question 1", "y", "x", 0.05)
    ]


def test_numbers_are_suspected_if_they_are_much_farther_from_the_prediction_than_usual():
    errors = [0.1, -0.1, 0.2, -0.2, 0.15, -0.15, 0.05, -3.0, 2.0, 0.0]
    rows = [Row(f"text {i}", str(float(i))) for i in range(10)]
    missed = Number().missed(rows, [Predicted(i + error) for i, error in enumerate(errors)])
    assert [one.distance for one in missed] == pytest.approx([abs(error) for error in errors])
    found = far_numbers(rows, missed)
    assert [(one["text"], one["label"], one["predicted"]) for one in found] == [
        ("text 7", 7.0, 4.0),
        ("text 8", 8.0, 10.0),
    ]
    assert suspect_columns(found) == ["label", "predicted", "distance", "text", "where"]
    shifted = Number().missed(rows, [Predicted(i + error + 5) for i, error in enumerate(errors)])
    assert [one["text"] for one in far_numbers(rows, shifted)] == [
        "text 7",
        "text 8",
    ]  # all too high: nothing is unusual
    assert far_numbers(rows, ()) == []  # a task whose answers are not numbers


def test_a_cosine_is_compared_in_the_range_of_the_numbers():
    pairs = [Compared(("a", "b"), label, "", {}) for label in ("1", "5")]
    answers = [Similarity(0.5, np.zeros((2, 2)))] * 2
    missed = Embed(loss="cosine", low=1.0, high=5.0).missed(pairs, answers)
    assert [(one.answer, one.truth) for one in missed] == [(3.0, 1.0), (3.0, 5.0)]
    assert Embed(loss="negatives").missed(pairs, answers) == []


def test_a_found_answer_is_graded_by_exact_match_and_by_all_spans_that_match():
    asked = [Asked("who?", "The cat sat.", ("cat", "a cat"), (4, 7)), Asked("why?", "The cat sat.", ())]
    answers = [
        Found((("sat", (8, 11), 0.5), ("The cat", (0, 7), 0.3), ("cat", (4, 7), 0.1))),
        Found((("", (0, 0), 0.9), ("cat", (4, 7), 0.1))),
    ]
    first, second = Span(no_answer=True, scorer="squad").graded(asked, answers)
    assert (first.answer, first.probability, first.truth, first.right) == ("sat", 0.5, "cat / a cat", False)
    assert first.of_truth == pytest.approx(0.4)  # SQuAD's exact match leaves articles out
    assert (second.answer, second.truth, second.of_truth, second.right) == ("(no answer)", "(no answer)", 0.9, True)


def test_sizes_of_a_learning_curve():
    assert parse_sizes("10,100,all", 500) == [10, 100, 500]
    for wrong, why in [("0,10", "from 1 to 500"), ("x", "got 'x'"), ("600", "from 1 to 500"), ("100,10", "grow")]:
        with pytest.raises(UserError, match=why):
            parse_sizes(wrong, 500)


def test_a_learning_curve_draws_nested_examples_and_writes_a_page(tmp_path):
    adapt = Pretended([0.5, 0.7])
    found = label_curve(adapt, ROWS, ROWS[:3], tmp_path / "curve", [5, 20], [0, 1])
    assert [(p["labels"], p["start"]) for p in found["points"]] == [
        (5, "pretrained"), (5, "untrained"), (20, "pretrained"), (20, "untrained"),
    ]  # fmt: skip
    assert found["points"][1]["mean"] == pytest.approx(0.5)
    by = {(len(t.examples), t.seed, t.fresh): {row.text for row in t.examples} for t in adapt.seen}
    assert by[5, 0, False] < by[20, 0, False]
    assert by[5, 0, False] == by[5, 0, True]
    assert by[5, 0, False] != by[5, 1, False]
    draw_curve(found, tmp_path / "curve", "a title")
    page = (tmp_path / "curve" / "report.html").read_text()
    assert "a title" in page
    assert "polyline" in page
    assert json.loads((tmp_path / "curve" / "curve.json").read_text())["points"][0]["labels"] == 5
