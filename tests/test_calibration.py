"""Calibration against explicit loops, and a temperature that is known."""

import numpy as np
import pytest

from unmask.calibration import best_temperature, calibration_error, reliability, tempered


def drawn(count: int, classes: int, sharper: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are too sure by a known factor, and labels drawn from the right ones."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(count, classes))
    right = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    truth = np.array([rng.choice(classes, p=row) for row in right])
    sure = np.exp(scores * sharper)
    return sure / sure.sum(1, keepdims=True), truth


def test_the_error_is_the_mean_distance_of_the_bins():
    shares, truth = drawn(500, 3, 2.0)
    total = 0.0
    for low in range(10):
        inside = [
            i for i, row in enumerate(shares) if low / 10 <= max(row) < (low + 1) / 10 or (low == 9 and max(row) == 1)
        ]
        if inside:
            sure = sum(max(shares[i]) for i in inside) / len(inside)
            right = sum(shares[i].argmax() == truth[i] for i in inside) / len(inside)
            total += len(inside) / len(shares) * abs(sure - right)
    assert calibration_error(shares, truth) == pytest.approx(total)
    assert sum(one.count for one in reliability(shares, truth)) == 500


@pytest.mark.parametrize("sharper", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_a_known_factor(sharper):
    shares, truth = drawn(20_000, 4, sharper)
    found = best_temperature(shares, truth)
    assert found == pytest.approx(sharper, rel=0.06)
    assert calibration_error(tempered(shares, found), truth) < 0.02


def test_a_temperature_never_changes_the_best_label():
    shares, _ = drawn(100, 5, 2.0)
    assert (tempered(shares, 3.7).argmax(1) == shares.argmax(1)).all()
    assert tempered(shares, 1.0) == pytest.approx(shares)


def test_a_sure_and_always_right_model_is_not_made_unsure():
    shares = np.array([[0.9, 0.1]] * 10)
    assert best_temperature(shares, np.zeros(10, dtype=int)) < 0.2
