"""Means, intervals and paired differences, against scipy."""

import numpy as np
import pytest
from scipy import stats

from unmask import tasks
from unmask.comparison.estimates import difference, estimate
from unmask.comparison.job import main_score
from unmask.comparison.summary import ranking
from unmask.errors import UserError


@pytest.mark.parametrize("number", [2, 3, 5, 12, 31])
def test_the_interval_is_students(number):
    values = np.random.default_rng(number).normal(0.7, 0.1, number)
    found = estimate({0: dict(enumerate(values))})
    low, high = stats.t.interval(0.95, number - 1, values.mean(), stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high), rel=1e-3)
    assert found.of == "adapting seeds"


def test_with_several_pretrainings_the_interval_is_over_them():
    scores = {0: {0: 0.70, 1: 0.72}, 1: {0: 0.80, 1: 0.82}, 2: {0: 0.75, 1: 0.77}}
    means = [0.71, 0.81, 0.76]
    found = estimate(scores)
    assert found.low == pytest.approx(stats.t.interval(0.95, 2, np.mean(means), stats.sem(means))[0], rel=1e-3)
    assert (found.of, found.runs) == ("pretraining seeds", 3)


def test_one_run_has_no_interval():
    found = estimate({0: {0: 0.5}})
    assert (found.mean, found.low, found.high, found.of) == (0.5, None, None, "one run")


def test_a_difference_is_paired_by_both_seeds():
    better, base = {0: {0: 0.6, 1: 0.9, 2: 0.7}}, {0: {0: 0.5, 1: 0.81, 3: 0.1}, 1: {0: 0.0}}
    found = difference(better, base)
    assert found.mean == pytest.approx(0.095)
    assert found.runs == 2
    assert difference(better, {1: {0: 0.0}}) is None


def results(*seeds):
    """Results of entries with several budgets; for each pretraining seed the scores by entry and budget."""
    runs = [
        {"entry": entry, "budget": budget, "seed": seed,
         "scores": {"t": {str(i): {"score": value} for i, value in enumerate(values)}}}
        for seed, scores in enumerate(seeds) for entry, budgets in scores.items() for budget, values in budgets.items()
    ]  # fmt: skip
    summary = [{"entry": run["entry"], "budget": run["budget"], "task": "t"} for run in runs]
    return {"tasks": {"t": {"higher": True}}, "runs": runs, "summary": summary}


CHANGE = {"a": {"1m": (0.6, 0.61), "4m": (0.7, 0.71)}, "b": {"1m": (0.5, 0.51), "4m": (0.8, 0.81)}}


def test_a_change_of_order_is_told_with_its_doubt():
    said = "t: a is ahead with 1m, b with 4m"
    assert list(ranking(results(CHANGE))) == [said + "; with one pretraining seed this may be chance"]
    assert list(ranking(results(CHANGE, CHANGE))) == [said]
    other = {"a": {"1m": (0.4, 0.41), "4m": (0.7, 0.71)}, "b": {"1m": (0.49, 0.5), "4m": (0.8, 0.81)}}
    assert list(ranking(results(CHANGE, other))) == [said + "; the difference is within the noise of the seeds"]
    same = {"a": {"1m": (0.6,), "4m": (0.7,)}, "b": {"1m": (0.5,), "4m": (0.6,)}}
    assert not list(ranking(results(same)))


def test_budgets_are_compared_by_their_size():
    scores = {"a": {"1m": (0.1,), "4m": (0.1,)}, "b": {"1m": (0.6,), "90s": (0.5,), "4m": (0.6,)},
              "c": {"1m": (0.5,), "90s": (0.6,), "4m": (0.5,)}}  # fmt: skip
    said = [sentence.partition(";")[0] for sentence in ranking(results(scores))]
    assert said == ["t: b is ahead with 1m, c with 90s", "t: c is ahead with 90s, b with 4m"]


def test_vectors_are_compared_by_the_score_that_chooses_their_epoch():
    found = main_score({"examples": 3, "spearman": 0.5, "pearson": 0.75}, tasks.Embed())
    assert (found["measure"], found["score"], found["higher"]) == ("spearman", 0.5, True)


def test_a_task_whose_main_score_is_not_among_its_scores_is_named():
    with pytest.raises(UserError, match="compared by macro_f1, but the scores are examples, right: name one of them"):
        main_score({"examples": 3, "right": 0.5}, tasks.Relation())
