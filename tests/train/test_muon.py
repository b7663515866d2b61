"""Muon against its formula with explicit loops, against torch.optim.Muon, and through a checkpoint."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.errors import UserError
from unmask.train import AdamW, Machine, Muon, Plan, Trainer, checkpoint
from unmask.train.muon import layer_matrices, orthogonal
from unmask.train.optimise import factor


class Stacked(nn.Module):
    """A layer with two matrices in one tensor, and a matrix of the same shape as each of them."""

    stacked = {"both.weight": 2}

    def __init__(self) -> None:
        super().__init__()
        self.both, self.one, self.wide = nn.Linear(3, 8), nn.Linear(3, 4, bias=False), nn.Linear(5, 2, bias=False)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.block = nn.Embedding(6, 3), Stacked()
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    @property
    def layer_modules(self):
        return [[self.block]]


def gradients(steps: int) -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    shapes = {name: p.shape for name, p in Network().named_parameters()}
    return [{n: torch.randn(shape, generator=generator) for n, shape in shapes.items()} for _ in range(steps)]


def run(spec, model, optimiser, first: int, last: int, steps: int) -> None:
    found = gradients(steps)
    for step in range(first, last + 1):
        for name, parameter in model.named_parameters():
            parameter.grad = found[step - 1][name].clone()
        spec.set(optimiser, Plan(steps).moment(step))
        optimiser.step()


def product(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))] for i in range(len(a))]


def turned(a):
    return [list(column) for column in zip(*a, strict=True)]


def newton_schulz(matrix: list[list[float]]) -> list[list[float]]:
    """X = a X + (b A + c A A) X with A = X X', five times, one number at a time."""
    tall = len(matrix) > len(matrix[0])
    norm = math.sqrt(sum(v * v for row in matrix for v in row))
    x = [[v / norm for v in row] for row in (turned(matrix) if tall else matrix)]
    for _ in range(5):
        a = product(x, turned(x))
        aa, n = product(a, a), len(a)
        change = [[-4.7750 * a[i][j] + 2.0315 * aa[i][j] for j in range(n)] for i in range(n)]
        moved = product(change, x)
        x = [[3.4445 * x[i][j] + moved[i][j] for j in range(len(x[0]))] for i in range(n)]
    return turned(x) if tall else x


def by_hand(spec: Muon, name: str, parts: int, steps: int) -> np.ndarray:
    """The matrices of one tensor, in float64."""
    pieces = np.split(dict(Network().named_parameters())[name].detach().double().numpy(), parts)
    means = [np.zeros_like(piece) for piece in pieces]
    for step, found in enumerate(gradients(steps), 1):
        rate = spec.rate * factor(spec.curve, spec.warmup, Plan(steps).moment(step))
        for i, g in enumerate(np.split(found[name].double().numpy(), parts)):
            means[i] = spec.momentum * means[i] + (1 - spec.momentum) * g
            move = np.array(newton_schulz((spec.momentum * means[i] + (1 - spec.momentum) * g).tolist()))
            size = 0.2 * math.sqrt(max(g.shape))
            pieces[i] = pieces[i] - rate * spec.decay * pieces[i] - rate * size * move
    return np.concatenate(pieces)


SPEC = Muon(rate=0.02, other_rate=0.005, decay=0.3, warmup=0.2)


@pytest.mark.parametrize("name, parts", [("block.both.weight", 2), ("block.one.weight", 1), ("block.wide.weight", 1)])
def test_a_matrix_moves_as_the_formula_says_and_stacked_matrices_move_apart(name, parts):
    model = Network()
    run(SPEC, model, SPEC.build(model), 1, 6, 6)
    assert np.allclose(model.get_parameter(name).detach().double().numpy(), by_hand(SPEC, name, parts, 6), atol=1e-5)


@pytest.mark.parametrize("shape", [(16, 16), (8, 24), (24, 8)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_move_agrees_with_the_muon_of_torch(shape, dtype):
    """torch computes in bfloat16 on every device, which has an error of some percent after five steps."""
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    weight = nn.Parameter(torch.zeros(shape))
    peer = torch.optim.Muon([weight], lr=1.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    weight.grad = gradient
    peer.step()
    mine = -0.2 * math.sqrt(max(shape)) * orthogonal(gradient[None], dtype)[0].float()
    assert (mine - weight).norm() < 0.03 * weight.norm()


@pytest.mark.parametrize("name", ["block.one.weight", "block.wide.weight"])
def test_several_steps_with_decay_agree_with_the_muon_of_torch(name):
    spec, model, peer = Muon(rate=0.1, decay=0.3, warmup=0.0, curve="constant"), Network(), Network()
    before = peer.get_parameter(name).detach().clone()
    run(spec, model, spec.build(model), 1, 6, 6)
    muon = torch.optim.Muon([peer.get_parameter(name)], lr=0.1, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")
    for found in gradients(6):
        peer.get_parameter(name).grad = found[name]
        muon.step()
    mine, other = model.get_parameter(name), peer.get_parameter(name)
    assert (mine - other).norm() < 0.05 * (other - before).norm()  # the error of bfloat16


def test_the_singular_values_of_a_move_are_near_one():
    values = torch.linalg.svdvals(orthogonal(torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(0))))
    assert values.min() > 0.5
    assert values.max() < 1.3


def test_everything_else_is_adamw_with_its_own_rate():
    model, peer = Network(), Network()
    run(SPEC, model, SPEC.build(model), 1, 6, 6)
    adam = AdamW(rate=0.005, decay=0.3, warmup=0.2)
    run(adam, peer, adam.build(peer), 1, 6, 6)
    for name in ("embed.weight", "block.both.bias"):
        assert torch.equal(model.get_parameter(name), peer.get_parameter(name)), name
    assert not torch.equal(model.block.one.weight, peer.block.one.weight)


def test_its_state_goes_through_a_checkpoint_to_the_bit(tmp_path):
    whole = Network()
    run(SPEC, whole, SPEC.build(whole), 1, 8, 8)
    half = Network()
    optimiser = SPEC.build(half)
    run(SPEC, half, optimiser, 1, 3, 8)
    checkpoint.save_state(tmp_path, half, optimiser, {"step": 3}, publish=True)
    again = Network()
    resumed = SPEC.build(again)
    checkpoint.load_state(tmp_path, again, resumed)
    run(SPEC, again, resumed, 4, 8, 8)
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name)), name


@pytest.mark.parametrize(
    "name, count, split",
    [("bert", 8, 3), ("albert", 4, 3), ("electra", 16, 3), ("xlnet", 12, 2), ("deberta", 12, 1), ("modernbert", 8, 3)],
)
def test_the_matrices_of_the_layers_of_every_network_are_found(name, count, split):
    recipe = recipes.get(name, size="tiny")
    model = recipe.system.build(recipe, vocabulary(), 0)
    found, names = layer_matrices(model), {p: n for n, p in model.named_parameters()}
    assert len(found) == count
    assert all("blocks" in names[p] and "bias" not in names[p] and p.dim() == 2 for p in found)
    fused = [n for p, n in found.items() if names[p].endswith(("qkv.weight", "key_value.weight"))]
    assert fused == [split] * len(fused) != []
    up = [n for p, n in found.items() if names[p].endswith("mlp.up.weight")]
    assert set(up) == {
        2 if getattr(recipe.system.backbone, "gated", False) else 1
    }  # activation and gate are two matrices


def test_a_recipe_trains_with_it_and_a_parameter_without_gradient_stays():
    recipe = recipes.get("electra", size="tiny", settings=["optimise=Muon", "system.backbone.width=16",
        "system.backbone.feedforward=32", "system.generator.width=8", "system.generator.feedforward=16"])  # fmt: skip
    assert recipe.optimise.rate == recipes.get("electra", size="tiny").optimise.rate  # shared values are kept
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    before = {n: p.detach().clone() for n, p in trainer.system.named_parameters()}
    trainer.gradients([random_batch(rows=4, length=32)], recipe.schedule[0].weights, 1)
    still = trainer.system.backbone.blocks[0].mlp.up.weight
    still.grad = None
    trainer.update(Plan(2).moment(1))
    moved = {n for n, p in trainer.system.named_parameters() if not torch.equal(p, before[n])}
    assert {n for n in before if n.endswith("weight")} - moved == {"backbone.blocks.0.mlp.up.weight"}
    assert still not in trainer.optimiser.state


def test_a_network_without_layers_and_impossible_numbers_are_a_mistake():
    with pytest.raises(UserError, match="this network has none that train: set optimise=AdamW"):
        Muon().build(nn.Linear(2, 2))
    for options in ({"momentum": 1.0}, {"other_rate": 0.0}, {"rate": 0}, {"betas": (0.9, 1.0)}):
        with pytest.raises(UserError, match=f"optimise.{next(iter(options))}"):
            Muon(**options)
