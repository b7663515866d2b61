"""Systems: how parts become one training step."""

from unmask.system.check import (
    SENTENCE,
    check,
    check_training,
    cost,
    flops_per_token,
    hides,
    objectives,
    questions,
    weights,
)
from unmask.system.generator_discriminator import GeneratorDiscriminator
from unmask.system.single import Single

__all__ = [
    "SENTENCE", "GeneratorDiscriminator", "Single", "check", "check_training", "cost", "flops_per_token", "hides",
    "objectives", "questions", "weights",
]  # fmt: skip
