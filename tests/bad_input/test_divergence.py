"""A loss or weights that are no numbers are told, and never replace a good checkpoint."""

import torch

from tests.command import mistake, pretrain
from unmask.train import checkpoint
from unmask.train.loop import Trainer


def test_a_loss_that_is_no_number_names_step_rate_and_last_good_checkpoint(data, tmp_path, monkeypatch):
    def broken(trainer, batches, weights, step, hide=None, done=0.0):
        means = gradients(trainer, batches, weights, step, hide, done)
        return {name: mean * (float("nan") if step == 13 else 1) for name, mean in means.items()}

    gradients = Trainer.gradients
    monkeypatch.setattr(Trainer, "gradients", broken)
    said = pretrain("bert", data, tmp_path / "run", steps=40, call=mistake)
    assert "diverged at step 13" in said
    assert "learning rate 0.000" in said
    assert "last good checkpoint is step 10" in said
    assert "lower optimise.rate" in said
    assert checkpoint.newest(tmp_path / "run") == 10


def test_a_rate_far_too_high_is_noticed(data, tmp_path):
    said = pretrain("roberta", data, tmp_path / "run", "--set", "optimise.rate=1e30", steps=40, call=mistake)
    assert "diverged at step" in said
    assert "no checkpoint was saved yet" in said


def test_weights_gone_wrong_never_replace_the_last_good_checkpoint(data, tmp_path, monkeypatch):
    def broken(trainer, moment):
        found = update(trainer, moment)
        if moment.step == 20:
            torch.nn.init.constant_(next(trainer.system.parameters()), float("nan"))
        return found

    update = Trainer.update
    monkeypatch.setattr(Trainer, "update", broken)
    said = pretrain("bert", data, tmp_path / "run", steps=40, call=mistake)
    assert "last good checkpoint is step 10" in said
    weights = checkpoint.read(tmp_path / "run" / "weights.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())
