"""Components of characters in a network: the forward pass by loops, gradients, the start, and a vocabulary that grows."""

from __future__ import annotations

import pytest
import torch

from tests.contracts.every import SMALL, narrow
from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.axes import gives_of
from unmask.backbone import Components
from unmask.contracts import applying, make_case
from unmask.errors import UserError
from unmask.recipe import Recipe
from unmask.system import check_training, with_tokens
from unmask.system.generator_discriminator import generator_of

SIZE = 200
CHECKED = ("leak", "view", "own token", "answers", "packing", "recordable", "resume", "round trip", "JSON")
RECIPES = ("bert", "gpt2", "xlnet", "bart")


def recipe_of(name: str, *settings: str, components: str = "Components(count=7, most=3)") -> Recipe:
    given = [f"system.backbone.components={components}", *settings]
    return recipes.get(name, size="tiny", settings=given)


def parts_of(token: int) -> list[int]:
    """The components of a token in these tests: none of special tokens and of every third, some twice."""
    return [] if token < 5 or token % 3 == 0 else [token % 7, (token // 7) % 7, token % 7][: token % 4]


def filled(system):
    """The system with components of all tokens, with random vectors of them; even tokens are in the text."""
    table = system.backbone.embed.token
    table.put(torch.tensor([[*parts_of(token), -1, -1, -1][:3] for token in range(SIZE)]))
    table.met(torch.arange(SIZE) % 2 == 0)
    with torch.no_grad():
        table.component[:-1].normal_(generator=torch.Generator().manual_seed(1))
    return system.eval()


def built(recipe: Recipe):
    return recipe.system.build(recipe, vocabulary(SIZE), 0)


def by_loops(table) -> torch.Tensor:
    """V D, what each token is embedded as."""
    rows = []
    for token in range(SIZE):
        row = torch.zeros(table.weight.shape[1])
        if token % 2 == 0 or not parts_of(token):
            row = row + table.weight[token]
        for part in parts_of(token):
            row = row + table.component[part]
        rows.append(row)
    return torch.stack(rows)


def test_a_token_is_its_own_vector_and_those_of_its_components_by_loops():
    table = filled(built(recipe_of("bert"))).backbone.embed.token
    ids = torch.arange(SIZE).view(10, 20)
    torch.testing.assert_close(table(ids), by_loops(table).view(10, 20, -1))
    alone = [token for token in range(SIZE) if token % 2 and parts_of(token)]
    assert len(alone) > 50
    assert torch.equal(table(torch.tensor(alone)), table.sums(torch.tensor(alone)))  # nothing of the own vector is left


@pytest.mark.parametrize("name", RECIPES)
def test_a_network_reads_the_sums_and_scores_by_own_vectors(name):
    """The same network without components, whose table holds the sums, has the same vectors between layers."""
    system, plain = filled(built(recipe_of(name))), built(recipe_of(name, components="none")).eval()
    batch = random_batch(3, 24)
    with torch.no_grad():
        plain.load_state_dict(system.state_dict(), strict=False)
        own = system.backbone.embed.token.weight.clone()
        plain.backbone.embed.token.weight.copy_(by_loops(system.backbone.embed.token))
        found, wanted = system.look(batch), plain.look(batch)
        for mine, theirs in zip(found.layers, wanted.layers, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)
        plain.backbone.embed.token.weight.copy_(own)  # the output of both is tied to it
        scores = [one.predict["tokens"].decode(found, batch) for one in (system, plain)]
    assert torch.equal(*scores)


def test_a_component_learns_from_all_its_tokens_and_an_own_vector_that_is_not_read_does_not():
    table = filled(built(recipe_of("bert"))).backbone.embed.token
    ids = torch.tensor([[8, 11, 8, 22, 6]])  # 11 is not in the text, 6 has no components
    weight = torch.randn(1, 5, table.weight.shape[1], generator=torch.Generator().manual_seed(2))
    (table(ids) * weight).sum().backward()
    wanted = torch.zeros_like(table.component)
    for place, token in enumerate(ids[0].tolist()):
        for part in parts_of(token):
            wanted[part] += weight[0, place]
    torch.testing.assert_close(table.component.grad, wanted)
    assert not table.weight.grad[11].any()
    torch.testing.assert_close(table.weight.grad[8], weight[0, 0] + weight[0, 2])


@pytest.mark.parametrize("name", RECIPES)
def test_training_starts_at_the_network_without_components(name):
    with_, without = built(recipe_of(name)), built(recipe_of(name, components="none"))
    assert not with_.backbone.embed.token.component.any()
    if name != "xlnet":  # it draws its tensors in another order
        assert torch.equal(with_.backbone.embed.token.weight, without.backbone.embed.token.weight)


def test_tokens_that_are_added_have_no_components_and_old_ones_keep_theirs():
    recipe = recipe_of("bert")
    old = filled(built(recipe))
    new = with_tokens(recipe, old, vocabulary(SIZE + 2), [(8,), (8, 10)])
    before, after = old.backbone.embed.token, new.backbone.embed.token
    ids = torch.arange(SIZE)
    assert torch.equal(after(ids), before(ids))
    added = after(torch.tensor([SIZE, SIZE + 1]))
    torch.testing.assert_close(added, torch.stack([before.weight[8], before.weight[[8, 10]].mean(0)]))


def test_both_networks_of_electra_read_components():
    recipe = recipe_of("electra")
    assert "components" in gives_of(generator_of(recipe.system))
    system = built(recipe)
    assert system.generator.embed.token is system.backbone.embed.token
    apart = built(recipe_of("electra", "system.shared=false"))
    assert apart.generator.embed.token.component.shape == apart.backbone.embed.token.component.shape
    with pytest.raises(UserError, match="system.generator.components=.* has no effect"):
        recipe_of("electra", "system.generator=Transformer(components=Components(count=3))")


def test_embeddings_in_clusters_have_no_table_to_add_components_to():
    recipe = recipes.get(
        "transformer-xl", size="tiny", variant="words", settings=["system.backbone.components=Components"]
    )
    with pytest.raises(UserError, match="components=Components needs one table of token embeddings"):
        check_training(recipe)


def test_a_recurrent_network_has_no_such_setting():
    with pytest.raises(UserError, match="unknown setting 'system.backbone.components'"):
        recipes.get("awd-lstm", settings=["system.backbone.components=Components"])


@pytest.mark.parametrize("value", ["count=-1", "most=-1"])
def test_sizes_below_0_are_refused(value):
    name, number = value.split("=")
    with pytest.raises(UserError, match=f"backbone.components.{name} must be 0 or more, got -1"):
        Components(**{name: int(number)})


@pytest.mark.parametrize("name", ["bert", "gpt2", "electra"])
def test_contracts_are_kept_with_components(name):
    """Nobody sees more, packed examples are what they are alone, a saved run is what was trained, a resumed run is the same."""
    case = make_case(narrow(recipe_of(name)), SMALL)
    tokens = case.build().backbone.embed.token
    assert (tokens.numbers != tokens.none).any()
    checked = [contract for contract in applying(case) if contract.name in CHECKED]
    assert {contract.name for contract in checked} >= {"leak", "packing", "resume", "round trip"}
    for contract in checked:
        contract.check(case)
