"""Rotary positions and layers with a window, by explicit loops; and what they cannot be combined with."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.backbone import Learned, Local, NoPositions, Rotary, Transformer
from unmask.errors import UserError
from unmask.see import Everything, LeftToRight
from unmask.system import cost
from unmask.system.fit import check_training

HEADS, HEAD, LENGTH = 2, 8, 24
WIDTH = HEADS * HEAD
CLOSE = {"atol": 1e-5, "rtol": 1e-4}
SHAPE = Transformer(
    layers=3, width=WIDTH, heads=HEADS, feedforward=24, length=40, dropout=0.0, norm="pre",
    positions=Rotary(theta=50.0, local_theta=7.0), local=Local(window=6, every=2),
)  # fmt: skip


def network(spec: Transformer, pattern: str = "everything"):
    """A network whose weights are all different, the biases and norms too."""
    made = spec.build(200, pattern).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.3)
    return made


def turned(vector, position: int, theta: float) -> list[float]:
    """A vector of a head, rotated plane by plane. The numbers i and i + d/2 are one complex number."""
    half = len(vector) // 2
    planes = [complex(vector[i], vector[i + half]) for i in range(half)]
    moved = [z * cmath.exp(1j * position * theta ** (-2 * i / len(vector))) for i, z in enumerate(planes)]
    return [z.real for z in moved] + [z.imag for z in moved]


def by_loops(attention, x, theta: float, reach: float, causal: bool) -> torch.Tensor:
    """T D, the attention of one example (T D), pair by pair."""
    q, k, v = attention.qkv(x).view(len(x), 3, HEADS, HEAD).unbind(1)
    gathered = torch.zeros(len(x), HEADS, HEAD)
    for head in range(HEADS):
        queries, keys = (
            [torch.tensor(turned(vectors[p, head].tolist(), p, theta)) for p in range(len(x))] for vectors in (q, k)
        )
        for i in range(len(x)):
            seen = [j for j in range(len(x)) if abs(i - j) <= reach and (j <= i or not causal)]
            scores = torch.stack([queries[i] @ keys[j] / math.sqrt(HEAD) for j in seen]).softmax(0)
            gathered[i, head] = sum(weight * v[j, head] for weight, j in zip(scores, seen, strict=True))
    return attention.out(gathered.flatten(1))


@pytest.mark.parametrize("view", [Everything(), LeftToRight()], ids=["everything", "left to right"])
@pytest.mark.parametrize("number, theta, reach", [(0, 50.0, math.inf), (1, 7.0, 3), (2, 50.0, math.inf)])
@torch.no_grad()
def test_a_layer_follows_the_formula_pair_by_pair_in_packed_rows(number, theta, reach, view):
    ours = network(SHAPE, view.pattern)
    batch = view.apply(random_batch(2, LENGTH, examples=2, padding=2))
    fed, found = [], []
    ours.blocks[number].attention.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
    ours.blocks[number].attention.register_forward_hook(lambda _, given, made: found.append(made))
    ours(batch)
    for row, example in ((row, example) for row in range(2) for example in range(2)):
        here = batch.example[row] == example
        expected = by_loops(ours.blocks[number].attention, fed[0][row][here], theta, reach, view == LeftToRight())
        torch.testing.assert_close(found[0][row][here], expected, **CLOSE)


@torch.no_grad()
def test_scores_depend_on_distances_only():
    """The same text at other positions gets the same vectors; with its positions doubled, it does not."""
    ours = network(replace(SHAPE, local=None, positions=Rotary()))
    batch = Everything().apply(random_batch(1, 12, padding=0))
    first, later, doubled = (
        ours(batch.replace(position=position))[0].last
        for position in (batch.position, batch.position + 5, batch.position * 2)
    )
    torch.testing.assert_close(first, later, **CLOSE)
    assert (first - doubled).abs().max() > 1e-2


@torch.no_grad()
def test_a_window_limits_what_moves_a_token():
    spec = replace(SHAPE, layers=2, positions=NoPositions(), local=Local(window=4, every=2))
    ours = network(spec)
    batch = Everything().apply(random_batch(1, 20, padding=0))
    _, mask, _ = ours._mask(batch, None, torch.float32)
    x = torch.randn(1, 20, WIDTH, generator=torch.Generator().manual_seed(1))
    other = x.clone()
    other[0, 9, 0] += 3
    from unmask.backbone.layer_masks import layer_masks

    masks = layer_masks(spec, batch, mask, batch.position)
    moved = [(ours.blocks[n](x, masks[n]) - ours.blocks[n](other, masks[n])).abs().amax(2)[0] > 1e-6 for n in (0, 1)]
    assert moved[0].all()
    assert moved[1].nonzero()[:, 0].tolist() == [7, 8, 9, 10, 11]


def test_gated_layers_multiply_their_activation_and_there_are_no_biases():
    spec = replace(SHAPE, gated=True, biases=False, first_norm=False)
    ours = network(spec)
    assert not [name for name, _ in ours.named_parameters() if "bias" in name]
    assert not list(ours.blocks[0].attention_norm.parameters())
    assert len(list(ours.blocks[1].attention_norm.parameters())) == 1
    mlp, x = ours.blocks[1].mlp, torch.randn(3, WIDTH)
    up, gate = mlp.up.weight[:24], mlp.up.weight[24:]
    with torch.no_grad():
        torch.testing.assert_close(mlp(x), (torch.nn.functional.gelu(x @ up.T) * (x @ gate.T)) @ mlp.down.weight.T)


def test_layers_that_share_attention_share_a_norm_even_if_the_first_has_none():
    ours = replace(SHAPE, sharing="attention", first_norm=False).build(200, "everything")
    norms = [block.attention_norm for block in ours.blocks]
    assert norms[1] is norms[2]
    assert isinstance(norms[1], torch.nn.LayerNorm)
    assert not isinstance(norms[0], torch.nn.LayerNorm)


def test_a_window_and_a_gate_change_what_a_layer_costs():
    plain = replace(SHAPE, local=None, positions=Learned())
    assert replace(plain, gated=True).flops(40, "everything") - plain.flops(40, "everything") == 3 * 2 * WIDTH * 24
    saved = plain.flops(40, "everything") - replace(plain, local=Local(6, every=2)).flops(40, "everything")
    assert saved == 4 * WIDTH * (40 - 7)  # one of three layers; a token sees three on each side and itself
    assert replace(plain, local=Local(6)).flops(5, "everything") == plain.flops(5, "everything")


@pytest.mark.parametrize("values, message", [
    ({"positions": Rotary(), "local": None, "heads": 16}, "width of a head must be even, got 1"),
    ({"first_norm": False, "norm": "post"}, "first_norm=false .* got norm=post: set norm=pre"),
])  # fmt: skip
def test_a_network_that_cannot_be_is_refused(values, message):
    with pytest.raises(UserError, match=message):
        replace(SHAPE, **values)


@pytest.mark.parametrize("make, message", [
    (lambda: Local(window=5), "local.window must be an even number, 2 or more, got 5"),
    (lambda: Local(every=1), "local.every must be 2 or more, got 1"),
    (lambda: Rotary(theta=1.0), "positions.theta must be over 1, got 1.0"),
    (lambda: Rotary(local_theta=0.5), "positions.local_theta must be over 1, got 0.5"),
])  # fmt: skip
def test_values_out_of_range_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize("name, settings, message", [
    ("deberta", ["system.backbone.positions=Rotary"], "needs attention that rotates .*: set system.backbone.attention=Full"),
    ("modernbert", ["system.backbone.local=none"], "needs layers in which tokens see only a window.*local_theta=none"),
])  # fmt: skip
def test_parts_that_do_not_fit_are_refused_by_their_facts(name, settings, message):
    with pytest.raises(UserError, match=message):
        check_training(recipes.get(name, size="tiny", settings=settings), vocabulary())


def test_a_network_without_rotation_is_not_even_built():
    with pytest.raises(UserError, match="positions=Rotary needs attention that rotates"):
        cost(recipes.get("deberta", size="tiny", settings=["system.backbone.positions=Rotary"]), 200)


def test_a_generator_has_biases_if_its_discriminator_has():
    """They share the norm of the embeddings."""
    with pytest.raises(UserError, match="system.generator.biases=False has no effect"):
        recipes.get("electra", size="tiny", settings=["system.generator.biases=false"])
