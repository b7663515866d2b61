"""Scores equal scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as oracle
from sklearn.dummy import DummyClassifier

from unmask import metrics

CASES = {
    "two classes": ([0, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0]),
    "all right": ([0, 1, 2], [0, 1, 2]),
    "all wrong": ([0, 1, 0], [1, 0, 1]),
    "one class predicted": ([0, 1, 2, 1], [1, 1, 1, 1]),
    "one class only": ([2, 2, 2], [2, 2, 2]),
    "a class never seen": ([0, 0, 3, 3], [0, 3, 3, 1]),
    **{
        f"random {seed}": tuple(np.random.default_rng(seed).integers(0, 2 + seed, (2, 50 * seed + 20)).tolist())
        for seed in range(4)
    },
}


@pytest.mark.parametrize("truth, predicted", CASES.values(), ids=CASES.keys())
def test_scores_are_those_of_scikit_learn(truth, predicted):
    classes = max(truth + predicted) + 1
    found = metrics.classification(truth, predicted, [f"class {i}" for i in range(classes)])
    assert found["accuracy"] == pytest.approx(oracle.accuracy_score(truth, predicted))
    assert found["macro_f1"] == pytest.approx(oracle.f1_score(truth, predicted, average="macro"))
    assert found["mcc"] == pytest.approx(oracle.matthews_corrcoef(truth, predicted))
    labels = list(range(classes))
    per_class = oracle.precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0)
    for score, expected in zip(("precision", "recall", "f1", "support"), per_class, strict=True):
        assert [of[score] for of in found["per_class"].values()] == pytest.approx(expected.tolist())
    guess = DummyClassifier().fit([[0]] * len(truth), truth)
    assert found["majority"]["accuracy"] == pytest.approx(guess.score([[0]] * len(truth), truth))
    assert found["confusion"] == oracle.confusion_matrix(truth, predicted, labels=labels).tolist()
    assert found["examples"] == len(truth)


def test_a_million_examples_do_not_lose_precision():
    table = np.array([[700_000, 1], [2, 299_997]])
    truth = np.repeat([0, 0, 1, 1], table.ravel())
    predicted = np.repeat([0, 1, 0, 1], table.ravel())
    assert metrics.mcc(metrics.confusion(truth, predicted, 2)) == pytest.approx(
        oracle.matthews_corrcoef(truth, predicted), abs=1e-12
    )


def test_no_example_scores_nothing():
    table = metrics.confusion([], [], 3)
    assert metrics.accuracy(table) == metrics.macro_f1(table) == metrics.mcc(table) == 0.0


def test_perplexity_and_bits_are_those_of_a_fair_die():
    assert metrics.perplexity(10 * np.log(6), 10) == pytest.approx(6)
    assert metrics.bits_per(10 * np.log(8), 5) == pytest.approx(6)
    assert metrics.perplexity(1e6, 1) == np.inf
    assert metrics.perplexity(709.7, 1) < np.inf


def test_the_worst_confusions_are_the_largest_counts_off_the_diagonal():
    truth, predicted = [0] * 9 + [1] * 5 + [2] * 3, [0] * 5 + [1] * 3 + [2] + [1] * 4 + [0] + [2, 0, 0]
    found = metrics.classification(truth, predicted, ["a", "b", "c"])["worst_confusions"]
    assert [(one["truth"], one["predicted"], one["count"]) for one in found] == [
        ("a", "b", 3), ("c", "a", 2), ("a", "c", 1), ("b", "a", 1),
    ]  # fmt: skip
    assert metrics.classification([0, 1], [0, 1], ["a", "b"])["worst_confusions"] == []
