"""Every contract over every recipe and variant that it applies to; a case that does not apply is not collected."""

from __future__ import annotations

import pytest

from tests.contracts import every
from unmask import recipes
from unmask.contracts import CONTRACTS, Case
from unmask.hide import Masked

PAIRS = every.pairs()


@pytest.mark.parametrize(
    "contract, name, variant", PAIRS, ids=[f"{name}-{variant}-{contract.name}" for contract, name, variant in PAIRS]
)
def test_the_contract_holds(contract, name, variant):
    case = (every.tiny_case if contract.name == "learns" else every.case)(name, variant)
    assert contract.applies(case)
    contract.check(case)


def test_every_contract_applies_to_some_recipe():
    assert {contract.name for contract in CONTRACTS} == {contract.name for contract, _, _ in PAIRS}


def test_every_variant_is_checked_and_every_recipe_is_trained():
    found = {(name, variant) for _, name, variant in PAIRS}
    assert found == {(name, variant) for name in recipes.names() for variant in every.variants(name)}
    assert {name for contract, name, _ in PAIRS if contract.trains} == set(recipes.names())


def test_names_of_contracts_are_unique():
    assert len({contract.name for contract in CONTRACTS}) == len(CONTRACTS)


def test_tokens_that_are_predicted_from_the_place_before_keep_the_contracts_about_hiding():
    recipe = every.case("bert").recipe.replace(hide=Masked(at="before"))
    case = Case(recipe, every.SMALL)
    found = case.hide(case.ways[0], case.rows(case.ways[0])).targets["tokens"]
    assert (found.where - found.at)[found.weight > 0].eq(1).all()
    for contract in CONTRACTS:
        if contract.name in ("targets", "survival", "special tokens", "budget", "same anywhere"):
            contract.check(case)
