"""Networks that are built for weights that are loaded next."""

import pytest
import torch

from tests.small import vocabulary
from unmask import recipes
from unmask.init_weights import Undrawn


@pytest.mark.parametrize("name", ["bert", "gpt2", "electra", "transformer-xl"])
def test_no_weight_is_random_and_none_is_missing(name):
    recipe = recipes.get(name, size="tiny")
    drawn = recipe.system.build(recipe, vocabulary(), 0).state_dict()
    with Undrawn():
        found, other = (recipe.system.build(recipe, vocabulary(), seed).state_dict() for seed in (0, 1))
    again = recipe.system.build(recipe, vocabulary(), 0).state_dict()
    assert found.keys() == drawn.keys()
    for key, tensor in drawn.items():
        assert found[key].shape == tensor.shape
        assert torch.equal(again[key], tensor), "the context must end"
        assert torch.equal(found[key], other[key]), f"{key} depends on the seed"
    assert any(not torch.equal(found[key], tensor) for key, tensor in drawn.items())
