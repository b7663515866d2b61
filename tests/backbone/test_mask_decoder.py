"""The enhanced mask decoder against explicit loops over the last layer; its weights are counted once."""

from __future__ import annotations

import pytest
import torch

from tests.backbone.test_disentangled import CLOSE, HEADS, WIDTH, by_loops, network, spec
from tests.small import random_batch
from unmask.backbone import Full, Learned
from unmask.backbone.mask_decoder import MaskDecoder
from unmask.errors import UserError
from unmask.see import Everything, visible


def last_layer(block, x, below, table, sees):
    """T D, the last layer with queries from x, keys and values from the layer below, one token after the other."""
    gathered = by_loops(block.attention, x, below, table, sees)
    middle = [block.attention_norm(x[i] + gathered[i]) for i in range(len(x))]
    return torch.stack([block.mlp_norm(each + block.mlp(each)) for each in middle])


@pytest.mark.parametrize("steps", [1, 2, 3])
@torch.no_grad()
def test_the_last_layer_is_applied_again_to_the_layer_below_plus_positions(steps):
    ours = network(4, decoder=MaskDecoder(steps=steps))
    batch = Everything().apply(random_batch(2, 12, examples=1, padding=2))
    hidden, _ = ours(batch)
    below, sees = hidden.layers[-2], visible(batch)
    for row in range(2):
        x = below[row] + torch.stack([ours.decoder.position.weight[place] for place in batch.position[row].tolist()])
        for _ in range(steps):
            x = last_layer(ours.blocks[-1], x, below[row], ours.shared_attention.table.weight, sees[row])
        torch.testing.assert_close(hidden.decoded[row], x, **CLOSE)


@torch.no_grad()
def test_layers_are_those_of_the_network_without_a_decoder_and_objectives_read_the_decoder():
    batch = Everything().apply(random_batch(2, 12))
    ours, bare = network(4, decoder=MaskDecoder()), network(4)
    bare.load_state_dict({name: t for name, t in ours.state_dict().items() if not name.startswith("decoder.")})
    hidden, alone = ours(batch)[0], bare(batch)[0]
    assert all(map(torch.equal, hidden.layers, alone.layers))
    assert hidden.for_prediction is hidden.decoded
    assert alone.for_prediction is alone.last
    assert not torch.allclose(hidden.decoded, hidden.last, atol=1e-2)


@torch.no_grad()
def test_absolute_positions_change_what_is_decoded_and_nothing_else():
    ours, batch = network(4, decoder=MaskDecoder()), random_batch(1, 12, padding=0)
    later = batch.replace(position=batch.position + 5)
    one, other = (ours(Everything().apply(each))[0] for each in (batch, later))
    assert all(map(torch.equal, one.layers, other.layers))
    assert not torch.allclose(one.decoded, other.decoded, atol=1e-2)


@torch.no_grad()
def test_a_packed_example_is_decoded_as_it_is_alone():
    ours, batch = network(4, decoder=MaskDecoder()), random_batch(1, 24, examples=2, padding=0)
    packed = ours(Everything().apply(batch))[0].decoded[0]
    for number in range(2):
        here = batch.example[0] == number
        alone = random_batch(1, int(here.sum()), padding=0).replace(ids=batch.ids[:, here])
        torch.testing.assert_close(ours(Everything().apply(alone))[0].decoded[0], packed[here], **CLOSE)


def test_only_the_positions_are_new_weights():
    ours, bare = network(4, decoder=MaskDecoder()), network(4)
    more = {name: tensor.shape for name, tensor in ours.named_parameters()}
    for name, _ in bare.named_parameters():
        more.pop(name)
    assert more == {"decoder.position.weight": (40, WIDTH)}
    assert len(set(ours.state_dict())) == len(list(ours.parameters()))
    assert ours.decoder.block[0] is ours.blocks[-1]


def test_gradients_reach_its_positions_and_the_last_layer():
    ours = network(4, decoder=MaskDecoder())
    batch = Everything().apply(random_batch(1, 12, padding=0))
    ours(batch)[0].decoded.square().sum().backward()
    used = ours.decoder.position.weight.grad.abs().sum(1) > 0
    assert used.nonzero()[:, 0].tolist() == list(range(12))
    assert all(p.grad is not None and p.grad.any() for p in ours.blocks[-1].parameters())


@torch.no_grad()
def test_it_works_on_full_attention_too():
    """One head of one layer: the decoder's query, the keys and values of the layer below."""
    ours = network(4, decoder=MaskDecoder(steps=1), attention=Full(), positions=Learned(), layers=2)
    batch = Everything().apply(random_batch(1, 9, padding=0))
    hidden, _ = ours(batch)
    below, block = hidden.layers[-2][0], ours.blocks[-1]
    x = below + ours.decoder.position.weight[:9]
    weight, bias = block.attention.qkv.weight.chunk(3), block.attention.qkv.bias.chunk(3)
    q, k, v = ((each @ w.T + b).view(9, HEADS, -1) for each, w, b in zip((x, below, below), weight, bias, strict=True))
    gathered = torch.zeros(9, HEADS, WIDTH // HEADS)
    for head in range(HEADS):
        for i in range(9):
            scores = torch.stack([q[i, head] @ k[j, head] for j in range(9)]) / (WIDTH // HEADS) ** 0.5
            gathered[i, head] = scores.softmax(0) @ v[:, head]
    x = block.attention_norm(x + block.attention.out(gathered.flatten(1)))
    torch.testing.assert_close(hidden.decoded[0], block.mlp_norm(x + block.mlp(x)), **CLOSE)


def test_a_cache_is_refused_by_name():
    made = spec(attention=Full(), positions=Learned(), decoder=MaskDecoder()).build(200, "left")
    with pytest.raises(UserError, match=r"system.backbone.decoder=MaskDecoder cannot .* cached=False \(--no-cache\)"):
        made.cache(1, 8)


def test_steps_below_one_are_refused():
    with pytest.raises(UserError, match="backbone.decoder.steps must be 1 or more, got 0"):
        MaskDecoder(steps=0)
