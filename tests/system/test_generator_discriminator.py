"""ELECTRA's system: what the generator draws, where gradients flow, and how the two losses are weighed."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import chi2

from tests.small import random_batch, vocabulary, without_dropout
from unmask import recipes
from unmask.batch import Targets
from unmask.errors import UserError
from unmask.system.generator_discriminator import filled, sample
from unmask.system.tracks import rows_of
from unmask.train import Machine, Plan, Trainer
from unmask.train.loop import MINIMISED

SMALL = [
    "system.backbone.width=16", "system.backbone.heads=2", "system.backbone.feedforward=32", "system.generator.width=8",
    "system.generator.heads=1", "system.generator.feedforward=16", "schedule.0.length=32",
]  # fmt: skip
VARIANTS = ("paper", "code", "learned", "hidden-only", "replace-mlm", "all-tokens")


def recipe_of(variant: str = "paper", *settings: str):
    return without_dropout(recipes.get("electra", size="tiny", variant=variant, settings=[*SMALL, *settings]))


def system_of(variant: str = "paper", *settings: str, seed: int = 0):
    recipe = recipe_of(variant, *settings)
    return recipe.system.build(recipe, vocabulary(), seed)


def at(batch, where: torch.Tensor):
    """The batch with targets at these places, all of them used."""
    return batch.replace(targets={"tokens": Targets(where, where, where * 0, where, where, torch.ones(len(where)))})


def test_tokens_are_drawn_by_their_probability():
    many, scores = 6000, torch.tensor([2.0, 0.0, -1.0, 1.0, -math.inf, 0.5])
    batch = random_batch(rows=1, length=16)
    batch = batch.replace(ids=batch.ids.expand(many, 16), row=batch.row.expand(many), visit=torch.arange(many))
    drawn = sample(scores.expand(many, 6), at(batch, torch.arange(many) * 16 + 5), 0)
    counts, expected = torch.bincount(drawn, minlength=6).double(), scores.softmax(0).double() * many
    assert counts[4] == 0
    rest = expected > 0
    assert ((counts - expected)[rest] ** 2 / expected[rest]).sum() < chi2.ppf(0.9999, 4)


def test_the_generator_is_never_asked_for_an_unknown_token_which_is_judged_as_original():
    system = system_of()
    batch = random_batch(rows=8, length=32)
    unknown = (batch.columns["word"] >= 0) & (torch.arange(32) % 4 == 0)
    batch = batch.replace(ids=torch.where(unknown, 1, batch.ids))
    hidden, counts = system.hide(batch)
    used = hidden.targets["tokens"].weight > 0
    assert not unknown.flatten()[hidden.targets["tokens"].where[used]].any()
    judged = filled(hidden, torch.full_like(hidden.targets["tokens"].ids, 9))
    assert torch.equal(judged.ids[unknown], judged.original[unknown])
    assert counts["replaced"] == batch.real.sum()  # asked of every token, unknown ones too


def test_a_draw_depends_on_seed_row_visit_and_place_alone():
    batch = random_batch(rows=5, length=16)
    where = torch.arange(5 * 16)
    scores = torch.randn(80, 50, generator=torch.Generator().manual_seed(0))
    drawn = sample(scores, at(batch, where), 3).view(5, 16)
    order, places = [3, 1], torch.tensor([9, 2, 11])
    part = batch.replace(ids=batch.ids[order], row=batch.row[order], visit=batch.visit[order])
    flat = (torch.arange(2)[:, None] * 16 + places).flatten()
    mine = scores.view(5, 16, 50)[order][:, places].flatten(0, 1)
    assert torch.equal(sample(mine, at(part, flat), 3).view(2, 3), drawn[order][:, places])
    for other in (
        sample(scores, at(batch, where), 4),
        sample(scores, at(batch.replace(visit=batch.visit + 1), where), 3),
        sample(scores, at(batch.replace(row=batch.row + 1), where), 3),
    ):
        assert not torch.equal(other.view(5, 16), drawn)
    assert len(set(sample(scores[:1].expand(80, 50), at(batch, where), 3).tolist())) > 5  # places differ


def test_very_sure_and_very_flat_scores_give_tokens_of_the_vocabulary():
    batch = random_batch(rows=4, length=16)
    where = torch.arange(64)
    for scores in (torch.zeros(64, 30_000), torch.full((64, 7), -1e4), torch.eye(7)[torch.arange(64) % 7] * 1e4):
        drawn = sample(scores, at(batch, where), 0)
        assert drawn.min() >= 0
        assert drawn.max() < scores.shape[1]
    assert torch.equal(drawn, torch.arange(64) % 7)


def test_the_embeddings_are_one_tensor_and_the_generator_writes_with_them():
    system = system_of()
    assert system.generator.embed is system.backbone.embed
    assert system.fill.weight is system.backbone.embed.token.weight
    assert system.generator.project.weight.shape == (8, 16)
    apart = system_of("paper", "system.shared=false")
    assert apart.generator.embed.token.weight is not apart.backbone.embed.token.weight
    assert apart.fill.weight is apart.generator.embed.token.weight
    extra = sum(p.numel() for p in apart.parameters()) - sum(p.numel() for p in system.parameters())
    assert extra == sum(p.numel() for p in system.backbone.embed.parameters())
    assert system.keep is system.backbone


@pytest.mark.parametrize("shared", ["true", "false"])
def test_the_generator_reads_whatever_the_discriminator_reads(shared):
    reads = ["length=40", "segments=4", "positions=Sinusoidal", "embedding=12"]
    system = system_of("paper", f"system.shared={shared}", *(f"system.backbone.{value}" for value in reads))
    for embed in (system.backbone.embed, system.generator.embed):
        assert embed.position.table.shape == (40, 12)
        assert embed.segment.weight.shape == (4, 12)


def touched(system, name: str) -> set[str]:
    """The parameters that a loss has a gradient for."""
    system.zero_grad(set_to_none=True)
    batch, _ = system.hide(random_batch(rows=4, length=32, examples=2))
    system.step(batch)[0][name].total.backward()
    return {n for n, p in system.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}


def test_no_gradient_of_the_discriminator_reaches_the_generators_layers():
    system = system_of()
    judged, guessed = touched(system, "replaced"), touched(system, "tokens")
    assert not {n for n in judged if n.startswith(("generator.", "fill."))}
    assert not {n for n in guessed if n.startswith(("backbone.blocks", "predict."))}
    shared = {n for n, _ in system.backbone.embed.named_parameters(prefix="backbone.embed")}
    assert judged & guessed == shared  # both train the embeddings, and nothing else in common
    assert {n for n in guessed if n.startswith("generator.blocks")}


def test_the_two_losses_are_weighed_as_the_schedule_says():
    recipe = recipe_of()
    assert recipe.schedule[0].weights == {"replaced": 50.0}
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    batch = random_batch(rows=4, length=32, examples=2)
    means = trainer.gradients([batch], recipe.schedule[0].weights, 1)
    found = {n: p.grad.clone() for n, p in trainer.system.named_parameters()}
    trainer.optimiser.zero_grad()
    losses = trainer.system.step(trainer.system.hide(batch)[0])[0]
    total = losses["tokens"].total / losses["tokens"].count + 50 * losses["replaced"].total / losses["replaced"].count
    total.backward()
    for name, parameter in trainer.system.named_parameters():
        assert torch.allclose(found[name], parameter.grad, atol=1e-6), name
    assert set(means) == {"tokens", "replaced", MINIMISED}
    assert means[MINIMISED].item() == pytest.approx(total.item())


def test_learned_weights_follow_the_formula_and_the_losses_are_told_unscaled():
    """Each loss over its variance exp(s), plus s/2 (Kendall et al.): the gradient of s is 1/2 - exp(-s) loss."""
    batch = random_batch(rows=4, length=32, examples=2)
    plain = Trainer(system_of("paper"), recipe_of().optimise, Machine(), 0).gradients([batch], {}, 1)
    trainer = Trainer(system_of("learned"), recipe_of("learned").optimise, Machine(), 0)
    balance = trainer.system.balance
    assert balance.tolist() == pytest.approx([0.0, -math.log(50)])
    with torch.no_grad():
        balance += torch.tensor([0.3, -0.2])
    means = trainer.gradients([batch], {}, 1)
    for name in ("tokens", "replaced"):
        assert torch.allclose(means[name], plain[name])  # the same networks, the same losses
    assert means["balance"].item() == pytest.approx(balance.sum().item() / 2)
    scaled = sum(math.exp(-s) * means[n].item() for s, n in zip(balance.tolist(), ("tokens", "replaced"), strict=True))
    assert means[MINIMISED].item() == pytest.approx(scaled + balance.sum().item() / 2)
    by_hand = [
        0.5 - math.exp(-s) * means[n].item() for s, n in zip(balance.tolist(), ("tokens", "replaced"), strict=True)
    ]
    assert balance.grad.tolist() == pytest.approx(by_hand, rel=1e-5)
    alone = Trainer(system_of("paper"), recipe_of().optimise, Machine(), 0)
    weights = {n: math.exp(-s) for s, n in zip(balance.tolist(), ("tokens", "replaced"), strict=True)}
    alone.gradients([batch], weights, 1)
    others = dict(trainer.system.named_parameters())
    for name, parameter in alone.system.named_parameters():
        assert torch.allclose(parameter.grad, others[name].grad, atol=1e-5), name


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_halves_of_a_batch_give_the_gradients_of_the_whole(variant):
    recipe = recipe_of(variant)
    batch = random_batch(rows=6, length=32, examples=2)
    found = []
    for portions in ([batch], [rows_of(batch, 0, 2), rows_of(batch, 2, 6)]):
        trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
        means = trainer.gradients(portions, recipe.schedule[0].weights, 1)
        found.append((means, {n: p.grad.clone() for n, p in trainer.system.named_parameters()}))
    for name, mean in found[0][0].items():
        assert torch.allclose(mean, found[1][0][name], atol=1e-5), name
    for name, whole in found[0][1].items():
        assert torch.allclose(whole, found[1][1][name], atol=1e-4), name


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("setting", ["system.shared=true", "system.shared=false", "arrange=SentenceOrder"])
def test_every_variant_trains_a_step_with_finite_losses(variant, setting):
    recipe = recipe_of(variant, setting)
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    before = {n: p.detach().clone() for n, p in trainer.system.named_parameters()}
    means = trainer.gradients([random_batch(rows=4, length=32, examples=2)], recipe.schedule[0].weights, 1)
    trainer.update(Plan(2).moment(1))
    assert set(means) == {*recipe.predict, *recipe.system.losses, MINIMISED} | (
        {"sentence"} if recipe.arrange.classes else set()
    )
    assert all(torch.isfinite(mean) for mean in means.values())
    assert all(torch.isfinite(p).all() for p in trainer.system.parameters())
    assert all(not torch.equal(p, before[n]) for n, p in trainer.system.named_parameters() if "weight" in n)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            ["system.generator.width=32"],
            "may not be wider than its discriminator, got 32 and 16: lower system.generator",
        ),
        (
            ["system.shared=false", "system.generator.length=16"],
            "system.generator.length=16 has no effect",
        ),
        (["system.backbone.segments=1"], "segments must be 0 for none, or 2 or more, got 1"),
        (
            ["schedule.0.weights={'replacd': 5.0}"],
            "the schedule has a weight for the loss 'replacd', but there is no such loss",
        ),
        (
            ["hide.units=Runs(size=40)"],
            "a hidden unit may have 40 words or tokens, but a row has only 32 tokens: set shorter hide.units",
        ),
    ],
)
def test_networks_that_do_not_fit_are_a_mistake(settings, message):
    with pytest.raises(UserError, match=message):
        system_of("paper", *settings)


def test_an_objective_may_not_have_the_name_of_the_generators_loss():
    setting = "system=GeneratorDiscriminator(generator=Transformer(layers=2, width=128, heads=2))"
    recipe = recipes.get("bert", size="tiny", settings=[setting])
    with pytest.raises(
        UserError,
        match="bert has an objective with the name tokens, but system=GeneratorDiscriminator adds a loss with this name",
    ):
        recipe.system.build(recipe, vocabulary(), 0)


def test_the_discriminator_reads_what_the_generator_guesses():
    system, read = system_of().eval(), []
    system.backbone.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    batch, _ = system.hide(random_batch(rows=4, length=64))
    with torch.no_grad():
        system.fill.bias[77] = 1e4  # the generator is sure of one token
        system.step(batch)
    where = batch.targets["tokens"].where[batch.targets["tokens"].weight > 0]
    assert (read[0].ids.flatten()[where] == 77).all()
    assert torch.equal(
        read[0].original.flatten()[where], batch.targets["tokens"].ids[batch.targets["tokens"].weight > 0]
    )
