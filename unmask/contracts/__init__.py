"""Contracts: the properties that every recipe must have, as functions. Tests and `unmask check` call them."""

from unmask.contracts.broken import ContractBroken, expect
from unmask.contracts.case import Case, StageTrack, make_case, shortened, without_dropout
from unmask.contracts.contract import Contract
from unmask.contracts.outcomes import CONTRACTS, Outcome, applying, check, outcome
from unmask.contracts.small_data import SmallData

__all__ = [
    "CONTRACTS", "Case", "Contract", "ContractBroken", "Outcome", "SmallData", "StageTrack", "applying", "check", "expect", "make_case",
    "outcome", "shortened", "without_dropout",
]  # fmt: skip
