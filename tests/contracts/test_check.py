"""`unmask check`: a table of contracts, JSON, and an exit code that says whether all were kept."""

from __future__ import annotations

import json

import pytest

from tests.command import mistake, run, works
from tests.contracts import every
from unmask import recipes
from unmask.contracts import CONTRACTS, Contract, ContractBroken, applying, outcome

QUICK = ("view", "targets", "JSON")


def _never(case):
    raise ContractBroken("The number must be 1, and it is 2.")


def _crashes(case):
    raise ZeroDivisionError("division by zero")


@pytest.fixture
def few(monkeypatch):
    """Few contracts, so that a check is quick; returns a way to add others."""

    def use(*more: Contract) -> None:
        chosen = [contract for contract in CONTRACTS if contract.name in QUICK]
        monkeypatch.setattr("unmask.contracts.outcomes.CONTRACTS", (*chosen, *more))

    use()
    return use


def test_a_recipe_that_keeps_its_contracts_gives_a_table_and_exit_code_0(few):
    shown = works("check", "gpt2").out
    for name in QUICK:
        assert name in shown
    assert shown.count("passed") == len(QUICK)
    assert "failed" not in shown


def test_a_broken_contract_is_named_with_what_was_found_and_exit_code_1(few):
    few(Contract("number", "The number is 1.", _never))
    ran = run("check", "gpt2")
    assert ran.code == 1
    assert "failed" in ran.out
    assert "The number must be 1, and it is 2." in ran.out
    assert "Traceback" not in ran.err


def test_json_has_one_record_for_each_contract(few):
    few(Contract("number", "The number is 1.", _never))
    ran = run("check", "gpt2", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert [record["contract"] for record in found] == [*QUICK, "number"]
    assert [record["passed"] for record in found] == [True] * len(QUICK) + [False]
    assert found[-1]["message"] == "The number must be 1, and it is 2."
    assert all(record["seconds"] >= 0 for record in found)


def test_a_recipe_that_nobody_knows_is_a_mistake():
    assert "unknown recipe 'brt'" in mistake("check", "brt")


def test_a_part_that_raises_another_error_has_broken_the_contract():
    found = outcome(Contract("crash", "It runs.", _crashes), every.case("gpt2"))
    assert not found.passed
    assert found.message == "ZeroDivisionError: division by zero"


def test_contracts_apply_by_facts():
    names = {name: {contract.name for contract in applying(every.case(name))} for name in ("bert", "gpt2", "xlnet")}
    assert "second stream" in names["xlnet"]
    assert "memory kept" in names["xlnet"]
    assert not {"second stream", "memory kept"} & (names["bert"] | names["gpt2"])
    assert {"budget", "whole units", "visits"} <= names["bert"]
    assert not {"budget", "whole units", "visits"} & names["gpt2"]


@pytest.mark.parametrize("contract", ["resume", "round trip"])
def test_a_run_that_averages_its_weights_and_chooses_its_dropout_keeps_the_contracts_about_saving(contract):
    settings = ["optimise=Muon", "optimise.average=0.9", "system.backbone.dropout=auto"]
    case = every.make_case(recipes.get("electra", size="tiny", settings=settings), every.SMALL)
    found = outcome(next(c for c in CONTRACTS if c.name == contract), case)
    assert found.passed, found.message
