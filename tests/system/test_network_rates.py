"""A learning rate for each network of ELECTRA's system, and the temperature of the generator's draws."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import chi2

from tests.small import random_batch, vocabulary
from tests.system.test_generator_discriminator import at, recipe_of, system_of
from unmask.curves import After, Linear
from unmask.errors import UserError
from unmask.system.generator_discriminator import sample
from unmask.train import Machine, Plan, Trainer

RATES = ["system.generator_rate=0.5", "system.discriminator_rate=After(share=0.4)"]


def network_of(name: str) -> str:
    """The network that a parameter belongs to; shared embeddings belong to the generator."""
    shared = name.startswith(("generator.", "fill.", "backbone.embed."))
    return "generator" if shared else "discriminator" if name.startswith(("backbone.", "predict.")) else "neither"


def moved(settings: list[str], step: int, steps: int = 10, optimise: str = "AdamW", variant: str = "paper"):
    """How far one step of a run moves each parameter."""
    recipe = recipe_of(variant, f"optimise={optimise}", "optimise.decay=0.0", *settings)
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    before = {n: p.detach().clone() for n, p in trainer.system.named_parameters()}
    trainer.gradients([random_batch(rows=4, length=32)], recipe.schedule[0].weights, step)
    trainer.update(Plan(steps).moment(step))
    return {n: p.detach() - before[n] for n, p in trainer.system.named_parameters()}


@pytest.mark.parametrize("optimise", ["AdamW", "LAMB", "Momentum", "Muon", "Adagrad"])
@pytest.mark.parametrize("step, late", [(4, 0.0), (5, 1.0)])  # After(share=0.4) of ten steps: 0 in the first four
def test_every_optimiser_scales_the_step_of_each_network(optimise, step, late):
    far = (
        ["optimise.rate=10.0"] if optimise in ("Momentum", "Adagrad") else []
    )  # its steps are as small as the gradients
    whole, scaled = moved(far, step, optimise=optimise), moved([*far, *RATES], step, optimise=optimise)
    shares = {"generator": 0.5, "discriminator": late}
    for name, move in whole.items():
        limit = max(1e-3 * float(move.abs().max()), 1e-8)
        assert torch.allclose(scaled[name], shares[network_of(name)] * move, atol=limit), name
    assert any(move.abs().max() > 1e-5 for n, move in whole.items() if network_of(n) == "discriminator")


def test_networks_with_their_own_embeddings_have_them_at_their_own_rate():
    found = moved([*RATES, "system.shared=false"], 2)
    assert found["backbone.embed.token.weight"].abs().max() == 0  # the discriminator has not begun
    assert found["generator.embed.token.weight"].abs().max() > 0


def test_learned_loss_weights_have_the_full_rate():
    whole, scaled = (moved(settings, 2, variant="learned") for settings in ([], RATES))
    assert torch.equal(whole["balance"], scaled["balance"])
    assert whole["balance"].abs().max() > 0


def test_after_is_zero_then_rises_to_its_value():
    assert [After(0.5, 2.0).at(done) for done in (0.0, 0.49, 0.5, 1.0)] == [0, 0, 2.0, 2.0]
    rising = After(0.2, 2.0, rise=0.4)
    assert [rising.at(done) for done in (0.0, 0.2, 0.3, 0.6, 1.0)] == pytest.approx([0, 0, 0.5, 2.0, 2.0])
    done = torch.tensor([0.0, 0.2, 0.3, 0.6, 1.0])
    assert rising.at(done).tolist() == pytest.approx([0, 0, 0.5, 2.0, 2.0])
    assert (rising.least, rising.most) == (0.0, 2.0)
    with pytest.raises(UserError, match="must end within the training"):
        After(0.8, rise=0.3)


@pytest.mark.parametrize("temperature", [0.5, torch.tensor(2.0)])
def test_tokens_are_drawn_from_the_softmax_of_the_scores_over_the_temperature(temperature):
    many, scores = 6000, torch.tensor([2.0, 0.0, -1.0, 1.0, 0.5])
    batch = random_batch(rows=1, length=16)
    batch = batch.replace(ids=batch.ids.expand(many, 16), row=batch.row.expand(many), visit=torch.arange(many))
    drawn = sample(scores.expand(many, 5), at(batch, torch.arange(many) * 16 + 5), 0, temperature)
    weights = [math.exp(score / float(temperature)) for score in scores.tolist()]
    counts, expected = torch.bincount(drawn, minlength=5), torch.tensor(weights) / sum(weights) * many
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, 4)


def test_a_curve_of_the_temperature_follows_the_progress_and_ends_where_training_ends():
    batch = random_batch(rows=4, length=64)
    found = {}
    for name, value in (("curve", "Linear(first=5.0, last=0.01)"), ("hot", "5.0"), ("cold", "0.01")):
        system, read = system_of("paper", f"system.temperature={value}").eval(), []
        system.backbone.register_forward_pre_hook(lambda _, inputs, read=read: read.append(inputs[0].ids))
        for progress in (torch.tensor(0.0), torch.tensor(1.0), None):
            system.step(system.hide(batch.replace(progress=progress))[0])
        found[name] = read
    assert torch.equal(found["curve"][0], found["hot"][0])
    assert torch.equal(found["curve"][1], found["cold"][1])
    assert torch.equal(found["curve"][2], found["cold"][2])  # validation: training is finished
    assert not torch.equal(found["hot"][0], found["cold"][0])


@pytest.mark.parametrize(
    "setting, message",
    [
        ("system.generator_rate=-1.0", "system.generator_rate must be 0 or more, got -1.0"),
        ("system.discriminator_rate=Linear(first=1.0, last=-0.5)", "system.discriminator_rate must be 0 or more"),
        ("system.temperature=0.0", "system.temperature must be over 0 at every step, got 0.0"),
        ("system.temperature=Linear", "system.temperature must be over 0 at every step"),
        ("system.temperature=AdamW", "unknown part for system.temperature, which takes a number or a part"),
    ],
)
def test_impossible_values_are_a_mistake(setting, message):
    assert Linear().least == 0
    with pytest.raises(UserError, match=message):
        recipe_of("paper", setting)
