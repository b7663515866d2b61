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
from unmask.system.continued import check_continued, with_network_of
from unmask.system.generator_discriminator import GeneratorDiscriminator
from unmask.system.single import Single

__all__ = [
    "SENTENCE", "GeneratorDiscriminator", "Single", "check", "check_continued", "check_training", "cost", "flops_per_token",
    "hides", "objectives", "questions", "schedule_flops", "second_stream", "step_flops", "with_network_of", "weights",
]  # fmt: skip
