"""The loss that is logged is what is minimised; each loss is told beside it as it is."""

from __future__ import annotations

import pytest

from tests.test_continue import go, recipe_of


@pytest.mark.parametrize(
    "name, settings, weights",
    [
        ("electra", [], {"tokens": 1.0, "replaced": 50.0}),
        ("bert", [f"schedule.{i}.weights={{'sentence': 0.25}}" for i in (0, 1)], {"tokens": 1.0, "sentence": 0.25}),
    ],
)
def test_the_logged_loss_sums_the_losses_each_with_its_weight(name, settings, weights, shards, tmp_path):
    records = [r for r in go(recipe_of(name, *settings), shards, tmp_path / "run") if r.get("stage") == 0]
    for kind in ("", "validation_"):
        found = [r for r in records if f"{kind}loss" in r]
        assert found
        for record in found:
            by_hand = sum(weight * record[f"{kind}loss_{loss}"] for loss, weight in weights.items())
            assert record[f"{kind}loss"] == pytest.approx(by_hand, rel=1e-5)
