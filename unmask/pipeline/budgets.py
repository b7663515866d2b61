"""One budget divided among stages, so that the parts add up to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from unmask.errors import require
from unmask.train import Budget

_UNITS = {"seconds": "s", "tokens": "tok", "steps": "steps", "flops": "flop"}


def divided(total: str, shares: Sequence[float]) -> list[str]:
    """The parts of a budget in the proportion of the shares. Rounded parts still add up to the budget."""
    budget, whole = Budget.parse(total), sum(shares)
    exact = [0.0]
    for share in shares:
        exact.append(exact[-1] + budget.amount * share / whole)
    fine = 0.1 if budget.kind == "seconds" else 1.0  # the smallest part that is written
    ends = [fine * round(end / fine) for end in exact]
    parts = [after - before for before, after in pairwise(ends)]
    require(
        min(parts) > 0.5 * fine,
        "the budget {total} is too small for {count} stages: its smallest part would be under {fine:g}{unit}",
        total=total,
        count=len(shares),
        fine=fine,
        unit=_UNITS[budget.kind],
    )
    return [spelled(budget.kind, part) for part in parts]


def added(budgets: Sequence[str]) -> str:
    """The sum of budgets of one unit."""
    found = [Budget.parse(one) for one in budgets]
    return spelled(found[0].kind, sum(one.amount for one in found))


def spelled(kind: str, amount: float) -> str:
    """A budget as a user writes it: 18m, 90s, 500steps, 1000000tok, 1e15flop."""
    if kind == "seconds" and amount >= 60 and abs(amount / 60 - round(amount / 60)) < 1e-6:
        return f"{round(amount / 60)}m"
    if kind == "seconds":
        return f"{amount:.10g}".removesuffix(".0") + "s" if amount < 1e6 else f"{round(amount)}s"
    return (f"{round(amount)}" if amount < 1e15 else f"{amount:.6g}".replace("e+", "e")) + _UNITS[kind]
