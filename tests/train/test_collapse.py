"""A network that gives all tokens one vector is told to the user."""

import torch

from unmask import recipes
from unmask.pretraining import pretrain


def notices(shards, out):
    lengths = [f"schedule.{i}.length=32" for i in range(2)]
    recipe = recipes.get("bert", size="tiny", settings=[*lengths, "schedule.*.rows=8"])
    records = list(pretrain(recipe, [shards["wordpiece"]], out, budget="4steps", device="cpu"))
    spread = [r["validation_spread"] for r in records if "validation_spread" in r][-1]
    return spread, [r["text"] for r in records if r.get("event") == "notice" and "collapsed" in r["text"]]


def test_a_healthy_network_spreads_its_vectors_and_nothing_is_said(shards, tmp_path):
    spread, said = notices(shards, tmp_path / "run")
    assert spread > 0.3
    assert not said


def test_a_collapsed_network_is_told_with_what_to_do(shards, tmp_path, monkeypatch):
    from unmask.backbone.transformer import TransformerModule

    forward = TransformerModule.forward

    def flat(self, batch, state=None):
        hidden, state = forward(self, batch, state)
        return hidden.replace(layers=tuple(torch.ones_like(x) + 1e-3 * x for x in hidden.layers)), state

    monkeypatch.setattr(TransformerModule, "forward", flat)
    spread, said = notices(shards, tmp_path / "run")
    assert spread < 0.1
    assert len(said) == 1
    assert "lower optimise.rate, or raise optimise.warmup" in said[0]
