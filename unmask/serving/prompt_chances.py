"""The probability of each token of a prompt, given the tokens before it."""

from __future__ import annotations

from typing import Any

import torch

from unmask.batch import Hidden
from unmask.infer.batches import left_padded
from unmask.infer.likelihood import SCORES
from unmask.infer.model import Model
from unmask.infer.next_token import NextToken
from unmask.serving.writing import Chances, chances_of


@torch.no_grad()
def prompt_chances(model: Model, read: list[int], prompt: list[int], count: int) -> list[Chances]:
    """For each token of a prompt its log probability and those of the `count` most likely tokens.

    `read`: what the model reads, which ends with the prompt. A token that is not read, or that nothing is read before, has
    no probability, and neither has a token that is never drawn."""
    reader = NextToken(model)
    head: Any = model.head("token scores", "score tokens")
    scored = min(len(prompt), len(read) - 1)
    batch = left_padded([read], model.tokenizer.vocabulary.pad).to(model.device)
    vectors = model.system.look(batch, model.recipe.writing).for_prediction[0, len(read) - 1 - scored : -1]
    found: list[Chances] = [(None, [])] * (len(prompt) - scored)
    wanted = iter(prompt[len(prompt) - scored :])
    for part in vectors.split(max(1, SCORES // model.tokenizer.vocabulary.size)):
        scores = reader.allowed(head.decode(Hidden((part[None],)), batch)[0].float())
        found += [chances_of(logs, next(wanted), count) for logs in scores.log_softmax(-1)]
    return found
