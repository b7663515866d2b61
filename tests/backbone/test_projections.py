"""The declared rows of queries, keys and values are those that attention uses as such, in every kind of attention."""

import pytest
import torch

from tests.adapt.test_every_way import small
from tests.small import random_batch
from unmask.system.tracks import view


def rows_of(length):
    """One row of this length, without padding."""
    batch = random_batch(rows=1, length=12, padding=0, size=40)
    cut = {name: getattr(batch, name)[:, :length] for name in ("ids", "example", "segment", "position")}
    return batch.replace(**cut, columns={}, summary=batch.summary * 0)


@pytest.mark.parametrize("name", ["bert", "gpt2", "deberta", "modernbert", "xlnet", "transformer-xl"])
def test_a_changed_query_moves_its_own_token_a_key_others_too_and_only_a_value_moves_a_token_alone(
    name, tokenizers, tmp_path
):
    for projection, moved_of_three, moved_alone in (
        ("query", {1}, False),
        ("key", {1, 2}, False),
        ("value", {1, 2}, True),
        ("out", {0, 1, 2}, True),
    ):
        model = small(name, tokenizers, tmp_path / projection)
        assert _moved(model, projection, length=3, token=1) >= moved_of_three - {0}
        assert (2 in _moved(model, projection, length=3, token=1)) == (2 in moved_of_three), projection
        assert bool(_moved(model, projection, length=1, token=0)) == moved_alone, projection


def _moved(model, projection, length, token):
    """The tokens whose vectors after the first layer move if a projection changes for one token only.

    Of `out`, the projection changes for all tokens: what it reads is not the vector of the token."""
    network, batch = model.system.backbone, view(model.system.tracks["main"], rows_of(length))
    attention = network.blocks[0].attention
    layer, rows = attention.projections[projection]
    linear, seen = getattr(attention, layer), []
    hook = attention.register_forward_pre_hook(lambda _, given: seen.append(given[0][0].detach()))
    with torch.no_grad():
        before = network(batch)[0].layers[1][0]
        hook.remove()
        weight = linear.weight.detach().clone()
        # a direction that only this token's input has
        only = torch.linalg.pinv(seen[0])[:, token] if projection != "out" else torch.ones(weight.shape[1])
        change = torch.randn(len(rows), generator=torch.Generator().manual_seed(0))
        linear.weight[list(rows)] += 3 * torch.outer(change, only)
        after = network(batch)[0].layers[1][0]
        linear.weight.copy_(weight)
    return set(torch.nonzero((after - before).abs().amax(1) > 1e-4).flatten().tolist())
