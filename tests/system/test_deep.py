"""Sixty-four layers train: the loss is a number and falls, with every layer asked for both characters."""

import torch

from tests.conftest import documents
from tests.small import random_batch
from unmask import recipes, text
from unmask.system import weights
from unmask.train import Fixed, Intervals, LoopStage, Machine, Trainer, train

SMALL = ["system.backbone.layers=64", "system.backbone.width=32", "system.backbone.feedforward=64"]


class Slices:
    """Rows cut out of one long text."""

    def __init__(self, ids, length):
        self.ids, self.length, self.dice = torch.tensor(ids), length, torch.Generator().manual_seed(0)

    def batch(self, rows):
        begin = torch.randint(len(self.ids) - self.length, (rows, 1), generator=self.dice)
        place = torch.arange(self.length).expand(rows, -1)
        zero = torch.zeros_like(place)
        like = random_batch(rows=rows, length=self.length)
        return like.replace(
            ids=self.ids[begin + place],
            columns={"word": zero, "sentence": zero},
            example=zero,
            segment=zero,
            position=place,
        )

    def state(self):
        return {}

    after_stage = state


def test_sixty_four_layers_learn_from_the_first_steps_on():
    recipe = recipes.get("char-transformer", size="tiny", settings=SMALL)
    tokenizer = text.train(recipe.tokenizer, ())
    source = Slices(tokenizer.encode("\n".join(documents(20))), 24)
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    assert len(system.predict) == 2 * 64
    leg = LoopStage(1.0, 4, 4, lambda _: source, weights(recipe, recipe.schedule[0]))
    records = list(
        train(Trainer(system, recipe.optimise, Machine(), 0), [leg], Fixed(16), folder=None, pace=Intervals(log=4))
    )
    losses = [record["loss_tokens"] for record in records]  # the loop refuses what is no number
    assert losses[0] > 5.4
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 5.2
    assert records[-1]["loss_layer_63"] < losses[0]
