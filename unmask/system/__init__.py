"""Systems: how parts become one training step."""

from unmask.system.single import Single, check, flops_per_token, objectives

__all__ = ["Single", "check", "flops_per_token", "objectives"]
