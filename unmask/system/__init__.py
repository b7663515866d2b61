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
    schedule_flops,
    second_stream,
    step_flops,
    weights,
)
from unmask.system.generator_discriminator import GeneratorDiscriminator
from unmask.system.onward import check_onward, taken_over
from unmask.system.single import Single

__all__ = [
    "SENTENCE", "GeneratorDiscriminator", "Single", "check", "check_onward", "check_training", "cost", "flops_per_token",
    "hides", "objectives", "questions", "schedule_flops", "second_stream", "step_flops", "taken_over", "weights",
]  # fmt: skip
