"""A budget in time, tokens, steps or operations; each becomes a number of steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from unmask.errors import UserError, require

Kind = Literal["seconds", "tokens", "steps", "flops"]
_UNITS: dict[str, tuple[Kind, float]] = {
    "s": ("seconds", 1), "m": ("seconds", 60), "h": ("seconds", 3600), "d": ("seconds", 86400),
    "tok": ("tokens", 1), "steps": ("steps", 1), "step": ("steps", 1), "flop": ("flops", 1),
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    kind: Kind
    amount: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        match = re.fullmatch(r"\s*((?:\d+\.?\d*|\.\d+)(?:e\d+)?)\s*([a-z]+)\s*", text.lower())
        if not match or match.group(2) not in _UNITS:
            raise UserError(
                ("a budget is a number with a unit, such as 20m, 90s, 2h, 1e9tok, 5000steps or 1e17flop, got {text!r}"),
                text=text,
            )
        kind, scale = _UNITS[match.group(2)]
        amount = float(match.group(1)) * scale
        require(amount > 0, "a budget must be over 0, got {text!r}", text=text)
        return cls(kind, amount)

    def steps(self, *, step_tokens: float, step_flops: float) -> int | None:
        """The number of steps, given the mean tokens and operations of a step; None for a budget in time, which needs measuring."""
        if self.kind == "seconds":
            return None
        each = {"tokens": step_tokens, "steps": 1, "flops": step_flops}[self.kind]
        return max(1, round(self.amount / each))


def scaled(text: str, share: float) -> str:
    """A share of a budget, as a budget: half of 5m is 150s."""
    budget = Budget.parse(text)
    unit = {"seconds": "s", "tokens": "tok", "steps": "steps", "flops": "flop"}[budget.kind]
    amount = budget.amount * share
    if budget.kind == "seconds" and amount < 100:
        return f"{amount:g}{unit}"
    return f"{max(1, round(amount))}{unit}" if amount < 1e6 else f"{amount:.4g}".replace("e+", "e") + unit
