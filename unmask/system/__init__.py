"""Systems: how parts become one training step."""

from unmask.system.single import SENTENCE, Single, check, cost, flops_per_token, objectives

__all__ = ["SENTENCE", "Single", "check", "cost", "flops_per_token", "objectives"]
