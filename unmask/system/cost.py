"""Cost: the number of parameters of a recipe, and the number of operations of its training."""

from __future__ import annotations

import torch

from unmask.axes import rules
from unmask.batch import Vocabulary
from unmask.recipe import Recipe, Stage
from unmask.system.objectives import chosen, objectives


def cost(recipe: Recipe, vocabulary: int) -> dict[str, float]:
    """Parameters, and training operations per token over the whole schedule. No memory is allocated for weights."""
    words = Vocabulary(size=vocabulary, pad=0, special=(), mask=0)
    with torch.device("meta"):
        system = recipe.system.build(recipe, words, 0)
    return {
        "parameters": sum(p.numel() for p in system.parameters()),
        "kept": sum(p.numel() for p in system.keep.parameters()),
        "flops_per_token": schedule_flops(recipe, vocabulary),
    }


def schedule_flops(recipe: Recipe, vocabulary: int) -> float:
    """Training operations per token over the whole schedule."""
    shares = [stage.share for stage in recipe.schedule]
    return sum(s * f for s, f in zip(shares, step_flops(recipe, vocabulary), strict=True)) / recipe.step_tokens


def step_flops(recipe: Recipe, vocabulary: int) -> list[float]:
    """Training operations of one step, for each stage."""
    return [s.rows * s.length * flops_per_token(recipe, vocabulary, s) for s in recipe.schedule]


def flops_per_token(recipe: Recipe, vocabulary: int, stage: Stage) -> float:
    """Training operations per token of a stage. Forward and backward pass together cost three forward passes."""
    if not recipe.takes_turns:
        return 3 * recipe.system.flops(recipe, vocabulary, stage.length, predicted_share(recipe, stage))
    total = 0.0
    for name, track in recipe.all_tracks(stage).items():  # a step computes only the objectives of its track
        alone = recipe.alone(name).replace(predict=chosen(recipe, track))
        predicted = sum(rule.share for rule in rules(track.hide))
        total += track.share * 3 * recipe.system.flops(alone, vocabulary, stage.length, predicted)
    return total


def predicted_share(recipe: Recipe, stage: Stage | None = None) -> float:
    """Predictions per token of a row: the mean over the tracks."""
    tracks = recipe.all_tracks(stage).values()
    return sum(track.share * sum(rule.share for rule in rules(track.hide)) for track in tracks)


def heads_flops(recipe: Recipe, vocabulary: int, share: float) -> float:
    """Operations per token of one forward pass of all objectives. `share`: the share of tokens that are predicted."""
    backbone = recipe.system.backbone
    embedding, outputs = backbone.embedding or backbone.width, backbone.outputs(vocabulary)
    return sum(part.flops(backbone.width, embedding, outputs, share) for part in objectives(recipe).values())
