"""A batch that grows during training is a schedule of stages with growing rows: each kind of budget is spent, and a resumed
run repeats it."""

from __future__ import annotations

import pytest

from tests.train.test_clock import NARROW
from unmask import pretraining, recipes
from unmask.infer.model import open_run
from unmask.pretraining import pretrain
from unmask.system import step_flops
from unmask.train import Trainer, checkpoint

ROWS = (4, 8, 16)
STAGES = ", ".join(
    f"Stage(share={share}, rows={n}, length=32)" for share, n in zip((0.25, 0.25, 0.5), ROWS, strict=True)
)
LARGEST = 16 * 32  # tokens of a step of the last stage


def ramp():
    return recipes.get("roberta", size="tiny", settings=[f"schedule=({STAGES})", "shrink=false", *NARROW])


@pytest.fixture
def rows(monkeypatch) -> list[int]:
    """The rows of every step that is made."""
    made: list[int] = []
    gradients = Trainer.gradients

    def counted(trainer, batches, *more):
        made.append(sum(batch.shape[0] for batch in batches))
        return gradients(trainer, batches, *more)

    monkeypatch.setattr(Trainer, "gradients", counted)
    return made


def test_stages_with_growing_rows_spend_a_budget_of_steps_tokens_or_operations(shards, tmp_path, rows):
    data, recipe = shards["byte-bpe"], ramp()
    list(pretrain(recipe, [data], tmp_path / "steps", budget="40steps", device="cpu"))
    assert rows == [4] * 10 + [8] * 10 + [16] * 20
    rows.clear()
    *_, last, _ = pretrain(recipe, [data], tmp_path / "tokens", budget="5000tok", device="cpu")
    assert last["tokens"] == 32 * sum(rows) == pytest.approx(5_000, abs=LARGEST)
    rows.clear()
    costs = dict(zip(ROWS, step_flops(recipe, open_run(tmp_path / "steps").tokenizer.vocabulary.size), strict=True))
    asked = 15 * costs[8]
    list(pretrain(recipe, [data], tmp_path / "operations", budget=f"{asked:.0f}flop", device="cpu"))
    assert sum(costs[n] for n in rows) == pytest.approx(asked, abs=costs[16])


def test_stages_with_growing_rows_spend_a_budget_in_time(shards, tmp_path, rows, monkeypatch):
    monkeypatch.setattr(pretraining, "step_seconds", lambda *_: 0.4)  # of the first stage: a tenth of a second per row
    list(
        pretrain(
            ramp(), [shards["byte-bpe"]], tmp_path / "run", budget="60s", device="cpu", now=lambda: 0.1 * sum(rows)
        )
    )
    assert 0.1 * sum(rows) == pytest.approx(60, rel=0.05)
    assert sorted(rows) == rows
    counts = [rows.count(n) / len(rows) for n in ROWS]
    assert counts == pytest.approx([0.25, 0.25, 0.5], abs=0.1)


@pytest.mark.parametrize("stopped_at", [4, 6])  # at the end of a stage, and inside one
def test_a_run_that_is_stopped_and_resumed_repeats_the_growth(shards, tmp_path, rows, stopped_at):
    options = {"budget": "16steps", "device": "cpu"}
    list(pretrain(ramp(), [shards["byte-bpe"]], tmp_path / "whole", **options))
    whole, made = list(rows), iter(range(stopped_at - 1))
    rows.clear()
    list(pretrain(ramp(), [shards["byte-bpe"]], tmp_path / "cut", **options, stop=lambda: next(made, None) is None))
    assert len(rows) == stopped_at
    list(pretrain(ramp(), [shards["byte-bpe"]], tmp_path / "cut", **options, resume=True))
    assert rows == whole
    published = [(tmp_path / name / checkpoint.WEIGHTS).read_bytes() for name in ("whole", "cut")]
    assert published[0] == published[1]
