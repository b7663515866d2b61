"""ULMFiT and SiATL against explicit loops: the rate of every parameter at every step, and what changes in every epoch."""

import math
import re

import pytest
import torch

from tests.adapt.made import base_of
from unmask import adapt as ways
from unmask import curves
from unmask.adapt import adapt
from unmask.curves import Slanted
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.settings import override
from unmask.tasks.classify import Classify, Example
from unmask.tasks.write import Pair, Write
from unmask.train import Trainer

EXAMPLES = [
    Example(Text(f"{text} {i}"), label) for i in range(5) for label, text in (("a", "the doctor"), ("b", "rain"))
]
KINDS = {
    "bert": "wordpiece",
    "gpt2": "byte-bpe",
    "xlnet": "unigram",
    "albert": "wordpiece",
    "transformer-xl": "byte-bpe",
}


def group_of(name, model="", layers=2):
    """The number of a parameter's layer group from the top, by its name: the head, the layers, the embeddings."""
    if name.startswith("predict."):
        return 0
    if model == "transformer-xl" and name.endswith(("content_bias", "place_bias")):
        return 1  # all layers share these: they belong to the highest
    block = re.match(r"backbone\.blocks\.(\d+)\.", name)
    if block:
        return layers - int(block[1])
    return 1 if name.startswith("backbone.final_norm") else layers + 1


@pytest.fixture
def steps(monkeypatch):
    """For each step: the weights before it, those after it, and the learning rate of each parameter."""
    found = []
    update = Trainer.update

    def watched(self, moment):
        named = dict(self.system.named_parameters())
        before = {name: p.detach().clone() for name, p in named.items()}
        done = update(self, moment)
        rate = {id(p): group["lr"] for group in self.optimiser.param_groups for p in group["params"]}
        rates = {name: rate[id(p)] for name, p in named.items() if id(p) in rate}
        found.append((before, {name: p.detach().clone() for name, p in named.items()}, rates))
        return done

    monkeypatch.setattr(Trainer, "update", watched)
    return found


def tuned(name, tokenizers, out, way, *settings, task=None):
    base = base_of(name, tokenizers[KINDS[name]], out / "base")
    tune = override(ways.get(way), settings)
    task = task or Classify(epochs=5, examples=5, rate=1e-2)
    return list(adapt(base, EXAMPLES, out / "run", task=task, tune=tune))


def moved(steps):
    """The names of the parameters that changed over some steps."""
    return {name for name, tensor in steps[0][0].items() if not torch.equal(tensor, steps[-1][1][name])}


@pytest.mark.parametrize("steps_in_all, cut, ratio", [(20, 0.1, 32.0), (40, 0.25, 8.0)])
def test_rates_follow_the_slanted_triangle_of_the_paper(steps_in_all, cut, ratio):
    turn = round(steps_in_all * cut)
    for t in range(steps_in_all):
        p = t / turn if t < turn else 1 - (t - turn) / (turn * (1 / cut - 1))
        expected = 0.01 * (1 + p * (ratio - 1)) / ratio
        assert Slanted(cut, ratio, 0.01).at(t / steps_in_all) == pytest.approx(expected)
        as_tensor = curves.at(Slanted(cut, ratio, 0.01), torch.tensor(t / steps_in_all, dtype=torch.float64))
        assert float(as_tensor) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["bert", "gpt2", "xlnet", "transformer-xl"])
def test_each_group_has_its_rate_at_each_step(name, tokenizers, tmp_path, steps):
    tuned(name, tokenizers, tmp_path, "ulmfit", "slanted.cut=0.2")
    assert len(steps) == 10
    for t, (_, _, rates) in enumerate(steps):
        p = t / 2 if t < 2 else 1 - (t - 2) / (2 * (1 / 0.2 - 1))
        triangle = (1 + p * 31) / 32
        for parameter, rate in rates.items():
            assert rate == pytest.approx(1e-2 * triangle / 2.6 ** group_of(parameter, name)), (parameter, t)


@pytest.mark.parametrize("name", ["bert", "gpt2", "xlnet", "transformer-xl"])
def test_with_each_epoch_one_more_group_trains(name, tokenizers, tmp_path, steps):
    tuned(name, tokenizers, tmp_path, "ulmfit")
    for epoch in range(5):
        changed = {group_of(parameter, name) for parameter in moved(steps[2 * epoch : 2 * epoch + 2])}
        assert changed == set(range(min(epoch + 1, 4))), epoch


def test_layers_that_share_their_weights_are_one_group(tokenizers, tmp_path, steps):
    records = tuned("albert", tokenizers, tmp_path, "ulmfit", task=Classify(epochs=3, examples=5, rate=1e-2))
    kinds = [{name.split(".")[1] for name in moved(steps[2 * epoch : 2 * epoch + 2])} for epoch in range(3)]
    assert kinds == [{"label"}, {"label", "blocks"}, {"label", "blocks", "embed", "project"}]
    assert not [record for record in records if record.get("event") == "notice"]


def test_each_of_the_three_can_be_switched_off(tokenizers, tmp_path, steps):
    tuned("bert", tokenizers, tmp_path / "a", "ulmfit", "gradual=false")
    assert {group_of(name) for name in moved(steps[:2])} == {0, 1, 2, 3}
    steps.clear()
    tuned("bert", tokenizers, tmp_path / "b", "ulmfit", "decay=1")
    assert [len(set(rates.values())) for _, _, rates in steps] == [1] * 10
    steps.clear()
    tuned("bert", tokenizers, tmp_path / "c", "ulmfit", "slanted=none")
    top = [rates["predict.label.out.weight"] for _, _, rates in steps]
    assert top == pytest.approx([1e-2 * (t + 1 if t == 0 else 10 - t) / (1 if t == 0 else 9) for t in range(10)])
    with pytest.raises(UserError, match="switch off all of ulmfit: leave --tune out"):
        override(ways.get("ulmfit"), ["decay=1", "slanted=none", "gradual=false"])


def test_a_frozen_parameter_takes_no_part_in_the_norm_that_is_clipped(tokenizers, tmp_path, monkeypatch):
    """The optimiser and the clipping see only what trains: a parameter that is unfrozen later begins without a history."""
    seen = []
    update = Trainer.update

    def watched(self, moment):
        seen.append({name for name, p in self.system.named_parameters() if p.grad is not None})
        return update(self, moment)

    monkeypatch.setattr(Trainer, "update", watched)
    tuned("bert", tokenizers, tmp_path, "ulmfit")
    for number, names in enumerate(seen):
        assert {group_of(name) for name in names} == set(range(min(number // 2 + 1, 4)))


def test_too_few_epochs_for_all_groups_are_told_and_the_usual_number_is_enough(tokenizers, tmp_path):
    records = tuned("bert", tokenizers, tmp_path / "few", "ulmfit", task=Classify(epochs=3, examples=5))
    (said,) = [record["text"] for record in records if record.get("event") == "notice"]
    assert "3 epochs are too few to train all 4 layer groups" in said
    records = tuned("bert", tokenizers, tmp_path / "enough", "ulmfit", task=Classify(examples=5))
    assert records[0]["plan"]["epochs"] == 4
    assert not [record for record in records if record.get("event") == "notice"]


@pytest.mark.parametrize("name", ["gpt2", "transformer-xl"])
def test_siatl_unfreezes_in_three_steps_with_a_falling_weight_of_the_language(
    name, tokenizers, tmp_path, steps, monkeypatch
):
    weights = []
    gradients = Trainer.gradients
    monkeypatch.setattr(
        Trainer, "gradients", lambda self, batches, given, *rest: (weights.append(given), gradients(self, batches, given, *rest))[1]
    )  # fmt: skip
    tuned(name, tokenizers, tmp_path, "siatl", "layers=2", "embeddings=4")
    for epoch, groups in enumerate([{0}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}]):
        assert {group_of(name) for name in moved(steps[2 * epoch : 2 * epoch + 2])} == groups
    assert {parameter.split(".")[1] for parameter in moved(steps[:2])} == {
        "label"
    }  # not the output of the language model
    found = [given["tokens"] for given in weights]
    assert found == pytest.approx([0.2 * math.exp(math.log(0.1 / 0.2) * t / 10) for t in range(10)])


def test_siatl_trains_for_ten_epochs_unless_the_user_gives_a_number(tokenizers, tmp_path):
    plan = tuned("gpt2", tokenizers, tmp_path / "usual", "siatl", task=Classify(examples=5))[0]["plan"]
    assert plan["epochs"] == 10
    plan = tuned("gpt2", tokenizers, tmp_path / "given", "siatl", task=Classify(epochs=4, examples=5))[0]["plan"]
    assert plan["epochs"] == 4


def test_what_makes_no_sense_is_refused(tokenizers, tmp_path):
    with pytest.raises(UserError, match="a model of bert does not read from left to right: set tune.language=0"):
        tuned("bert", tokenizers, tmp_path, "siatl")
    with pytest.raises(UserError, match="in this order, got 3 and 2"):
        override(ways.get("siatl"), ["layers=3", "embeddings=2"])
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    with pytest.raises(UserError, match="language=0.5 is the weight .* its own: set tune.language=0.5"):
        tuned("gpt2", tokenizers, tmp_path, "siatl", task=Classify(language=0.5))
    with pytest.raises(UserError, match="--task write adds no head"):
        list(adapt(base, [Pair("a", "b")], tmp_path / "run", task=Write(), tune=ways.get("siatl")))
    with pytest.raises(UserError, match="layer_decay=0.8 .* with --tune ulmfit it has no effect"):
        tuned("bert", tokenizers, tmp_path, "ulmfit", task=Classify(layer_decay=0.8))
    with pytest.raises(UserError, match="warmup=0.1 has no effect, because the slanted triangle has its own rise"):
        tuned("bert", tokenizers, tmp_path, "ulmfit", task=Classify(warmup=0.1))
    with pytest.raises(UserError, match="tune.decay must be 1 or more, got 0.5"):
        override(ways.get("ulmfit"), ["decay=0.5"])
    with pytest.raises(UserError, match=r"the cut of Slanted must be in \(0, 1\), got 2"):
        override(ways.get("ulmfit"), ["slanted.cut=2"])
    with pytest.raises(UserError, match="more layers than the network has, 2: lower it"):
        tuned("bert", tokenizers, tmp_path, "last", "layers=3")
    with pytest.raises(UserError, match="tune.layers must be 1 or more, got 0"):
        override(ways.get("last"), ["layers=0"])
    assert not (tmp_path / "run").exists()


def test_the_last_layers_train_and_those_below_do_not(tokenizers, tmp_path, steps):
    tuned("xlnet", tokenizers, tmp_path, "last", "layers=1")
    assert {group_of(name) for name in moved(steps)} == {0, 1}
