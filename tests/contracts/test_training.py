"""Contracts 3 to 6: learns, resumes to the bit, round-trips, accumulates exactly."""

import hashlib

import pytest
import torch

from tests.contracts.conftest import some_rows
from unmask.infer.model import open_run
from unmask.pretraining import pretrain
from unmask.run import from_json, to_json
from unmask.settings import flat, override
from unmask.train import Fixed, Intervals, LoopStage, Machine, Trainer, train


class Same:
    """Always the same batch."""

    def __init__(self, batch):
        self.one = batch

    def batch(self, rows):
        return self.one

    def state(self):
        return {}

    after_stage = state


def without_dropout(recipe):
    return override(recipe, [f"{name}=0.0" for name in flat(recipe) if name.endswith("dropout")])


def test_it_overfits_eight_rows(case):
    rate = 3 * case.recipe.optimise.rate
    recipe = override(without_dropout(case.recipe), [f"optimise.rate={rate}", "optimise.curve=constant"])
    system = recipe.system.build(recipe, case.tokenizer.vocabulary, 0)
    batch = case.batch(8)
    trainer = Trainer(system, recipe.optimise, Machine(), 0)
    records = list(
        train(
            trainer,
            [LoopStage(1.0, 8, 8, lambda _: Same(batch))],
            Fixed(120),
            folder=None,
            pace=Intervals(log=120),
        )  # fmt: skip
    )
    assert records[0]["loss_tokens"] > 4
    system.eval()
    with torch.no_grad():
        losses = system.step(system.hide(batch)[0], trainer.memory[0])[0]  # it remembers this very batch
    for name, loss in losses.items():
        assert loss.total / loss.count < 0.25, name


def test_two_halves_of_a_batch_give_the_gradients_of_the_whole(case):
    recipe = without_dropout(case.recipe)
    batch = case.batch(8, length=64)
    halves = [some_rows(batch, range(4)), some_rows(batch, range(4, 8))]
    found = []
    for portions in ([batch], halves):
        trainer = Trainer(recipe.system.build(recipe, case.tokenizer.vocabulary, 0), recipe.optimise, Machine(), 0)
        means = trainer.gradients(portions, {}, 1)
        found.append((means, [p.grad.clone() for p in trainer.system.parameters() if p.grad is not None]))
    for name, mean in found[0][0].items():
        assert torch.allclose(mean, found[1][0][name], atol=1e-5)
    for whole, parts in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(whole, parts, atol=1e-5)


@pytest.mark.parametrize("dropped", [0.0, 0.3], ids=["no attention dropout", "attention dropout"])
def test_ten_steps_equal_five_a_stop_and_five_more_to_the_bit(case, dropped, tmp_path):
    options = {"budget": "10steps", "device": "cpu", "seed": 3}
    recipe = override(case.recipe, [f"system.backbone.attention_dropout={dropped}"])
    for _ in pretrain(recipe, [case.data], tmp_path / "whole", **options):
        pass
    seen = []
    for record in pretrain(recipe, [case.data], tmp_path / "cut", **options, stop=lambda seen=seen: len(seen) >= 5):
        seen.extend([record] if "step" in record else [])
    assert seen[-1]["stopped"]
    assert seen[-1]["step"] < 10
    for _ in pretrain(recipe, [case.data], tmp_path / "cut", **options, resume=True):
        pass
    for name in ("weights.safetensors", "optimiser.safetensors"):
        digests = [
            hashlib.sha256((tmp_path / run / "state" / "10" / name).read_bytes()).hexdigest()
            for run in ("whole", "cut")
        ]
        assert digests[0] == digests[1], name


def test_a_saved_run_opens_with_the_same_outputs(case, tmp_path):
    for _ in pretrain(case.recipe, [case.data], tmp_path / "run", budget="2steps", device="cpu"):
        pass
    one, two = open_run(tmp_path / "run", device="cpu"), open_run(tmp_path / "run", device="cpu")
    batch = case.batch(2)
    with torch.no_grad():
        assert torch.equal(one.system.look(batch).last, two.system.look(batch).last)
    assert one.recipe == case.recipe


def test_a_recipe_survives_json(case):
    assert from_json(to_json(case.recipe)) == case.recipe


def test_json_names_only_parts_of_unmask():
    with pytest.raises(ValueError, match="only name parts of unmask"):
        from_json('{"part": "os.system", "command": "true"}')
