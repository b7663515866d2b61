"""Systems: how parts become one training step, whether they fit together, and what they cost."""

from unmask.system.continued import check_continued, with_network_of
from unmask.system.cost import cost, predicted_share, schedule_flops, step_flops
from unmask.system.fit import check_fit, check_training
from unmask.system.generator_discriminator import GeneratorDiscriminator
from unmask.system.objectives import SENTENCE, asked, asked_losses, chosen, objectives, predictions, weights
from unmask.system.single import Single
from unmask.system.token_rows import token_biases, with_tokens

__all__ = [
    "SENTENCE", "GeneratorDiscriminator", "Single", "asked", "asked_losses", "check_continued", "check_fit", "check_training", "chosen", "cost", "objectives",
    "predicted_share", "predictions", "schedule_flops", "step_flops", "token_biases", "weights", "with_network_of", "with_tokens",
]  # fmt: skip
