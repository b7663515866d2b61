"""Outcomes: the list of all contracts, those that apply to a case, and their results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from unmask.contracts import (
    budget,
    decoder,
    hiding,
    leak,
    memory,
    own_token,
    packing,
    recordable,
    same_anywhere,
    saving,
    training,
    turns,
)
from unmask.contracts.broken import ContractBroken
from unmask.contracts.case import Case, make_case
from unmask.contracts.contract import Contract
from unmask.contracts.small_data import SmallData
from unmask.recipe import Recipe
from unmask.system import check_training

CONTRACTS: tuple[Contract, ...] = (
    *leak.CONTRACTS, *decoder.CONTRACTS, *memory.CONTRACTS, *own_token.CONTRACTS, *hiding.CONTRACTS, *budget.CONTRACTS,
    *same_anywhere.CONTRACTS, *packing.CONTRACTS, *recordable.CONTRACTS, *saving.CONTRACTS, *training.CONTRACTS, *turns.CONTRACTS,
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of one contract."""

    contract: str  # its name
    promise: str  # the property, as a sentence
    passed: bool
    seconds: float
    message: str = ""  # if it failed: what was expected, and what was found


def applying(case: Case) -> list[Contract]:
    """The contracts that apply to a case."""
    return [contract for contract in CONTRACTS if contract.applies(case)]


def check(recipe: Recipe) -> Iterator[Outcome]:
    """Check a recipe against every contract that applies. A recipe whose parts do not fit is refused at once."""
    check_training(recipe)
    case = make_case(recipe, SmallData())
    for contract in applying(case):
        yield outcome(contract, case)


def outcome(contract: Contract, case: Case) -> Outcome:
    """Run one contract. If the recipe raises any error, the contract fails."""
    began = time.monotonic()
    try:
        contract.check(case)
        message = ""
    except ContractBroken as error:
        message = str(error)
    except Exception as error:  # a user's part may raise any exception
        message = f"{type(error).__name__}: {error}"
    return Outcome(contract.name, contract.promise, not message, time.monotonic() - began, message)
