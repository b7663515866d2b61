"""Heads that start at the neighbours: where the first layer reads before any training, by the formula of attention."""

from __future__ import annotations

import math

import pytest
import torch

from tests.small import vocabulary
from unmask import recipes
from unmask.backbone import Learned, Transformer
from unmask.backbone.disentangled import Disentangled
from unmask.backbone.neighbour_heads import offsets
from unmask.errors import UserError

NEIGHBOURS = "system.backbone.positions.start=neighbours"


def network(name: str, *settings: str, size: str = "mini"):
    recipe = recipes.get(name, size=size, settings=settings)
    return recipe.system.build(recipe, vocabulary(400), 0).backbone


def attention(net, tokens: int = 48) -> torch.Tensor:
    """H T T, the weights of the first layer for random tokens: softmax(q k / sqrt(d)), one head after the other."""
    return weights_of(net.spec, net.embed, net.blocks[0], net.project, net.pattern, tokens)


def weights_of(spec, embed, layer, project, pattern: str, tokens: int = 48) -> torch.Tensor:
    ids = torch.randint(10, 400, (tokens,), generator=torch.Generator().manual_seed(0))
    embedded = embed.token(ids) + embed.position(torch.arange(tokens))
    x = project(embed.norm(embedded))
    x = layer.attention_norm(x) if spec.norm == "pre" else x
    query, key, _ = (x @ layer.attention.qkv.weight.T + layer.attention.qkv.bias).split(spec.width, 1)
    width, found = spec.width // spec.heads, []
    for head in range(spec.heads):
        rows = slice(head * width, (head + 1) * width)
        score = query[:, rows] @ key[:, rows].T / math.sqrt(width)
        if pattern == "left":
            score = score.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
        found.append(score.softmax(1))
    return torch.stack(found).detach()


def mean_at(weights: torch.Tensor, offset: int) -> float:
    """The mean weight of the token at this distance."""
    return float(weights.diagonal(offset).mean())


@pytest.mark.parametrize(
    "name, size, expected",
    [("roberta", "tiny", [-1, 1]), ("roberta", "small", [-1, 1, -2, 2]), ("albert", "mini", [-1, 1]), ("gpt2", "small", [-1, -2, -3, -4])],
)  # fmt: skip
def test_half_of_the_heads_read_one_neighbour_each(name, size, expected):
    weights = attention(network(name, NEIGHBOURS, size=size))
    for head, offset in enumerate(expected):
        at = {place: mean_at(weights[head], place) for place in range(-8, 1 if name == "gpt2" else 9)}
        assert max(at, key=at.get) == offset
        assert 0.3 < at[offset] < 0.6
        assert sum(at[place] for place in at if abs(place - offset) <= 2) > 0.8
    for others in weights[len(expected) :]:
        assert mean_at(others, -1) < 0.1


def test_a_decoder_reads_the_tokens_before_and_its_encoder_both_neighbours():
    net = network("bart", NEIGHBOURS, "system.backbone.heads=8", size="small")
    found = weights_of(net.spec.encoder, net.decoder_embed, net.decoder_blocks[0], torch.nn.Identity(), "left")
    for head, offset in enumerate((-1, -2, -3, -4)):
        assert max(range(-8, 1), key=lambda place: mean_at(found[head], place)) == offset
    assert not torch.equal(net.decoder_blocks[0].attention.qkv.weight, net.encoder.blocks[0].attention.qkv.weight)
    read = attention(net.encoder)
    assert [max(range(-8, 9), key=lambda place: mean_at(head, place)) for head in read[:4]] == [-1, 1, -2, 2]


def test_random_heads_read_all_tokens_alike():
    weights = attention(network("roberta", "system.backbone.positions.start=random", "system.backbone.deviation=0.02"))
    assert weights.max() < 2 / 48


def test_only_values_change_not_the_architecture():
    near, random = network("albert", NEIGHBOURS), network("albert", "system.backbone.positions.start=random")
    shapes = [{name: weight.shape for name, weight in net.state_dict().items()} for net in (near, random)]
    assert shapes[0] == shapes[1]


def test_where_heads_start():
    assert offsets(12, "everything") == [-1, 1, -2, 2, -3, 3]
    assert offsets(8, "left") == [-1, -2, -3, -4]
    assert offsets(1, "ranked") == [-1]


def test_an_attention_with_other_weights_is_refused_with_what_to_set():
    with pytest.raises(
        UserError,
        match=r"sets initial weights of attention=Full, got attention=Disentangled: set positions.start=random",
    ):
        Transformer(layers=1, width=16, heads=2, attention=Disentangled(), positions=Learned(start="neighbours"))


def test_other_positions_replace_it():
    recipe = recipes.get("roberta", size="tiny", settings=["system.backbone.positions=Rotary"])
    assert not recipe.system.backbone.positions.neighbours
