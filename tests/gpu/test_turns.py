"""Tracks that take turns on a GPU: recorded steps train the weights that steps without a recording train."""

import pytest
import torch

from tests.contracts.every import SMALL
from unmask import recipes
from unmask.contracts import make_case
from unmask.contracts.case import without_dropout
from unmask.pretraining.measure import legs_of
from unmask.train import Fixed, Machine, Momentum, Trainer, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def case_of(variant):
    """ERNIE 2.0 that hides words: phrases and entities would need a lexicon."""
    return make_case(recipes.get("ernie-2", size="tiny", variant=variant, settings=["hide.units=Words"]), SMALL)


@pytest.mark.parametrize("variant", ["paper", "joint"])
def test_recorded_steps_train_the_same_weights(variant):
    case, found = case_of(variant), []
    # not Adam: it makes large steps of the rounding errors in gradients that are 0, such as those of the biases of keys
    recipe = without_dropout(case.recipe).replace(optimise=Momentum(rate=0.01))
    for recorded in (False, True):
        trainer = Trainer(case.build(recipe), recipe.optimise, Machine(device="cuda", recorded=recorded), 0)
        legs = legs_of(recipe, case.mixture, [stage.rows for stage in recipe.schedule], 0, [])
        (*_, last) = train(trainer, legs, Fixed(28), folder=None)
        assert sum(last["turns"].values()) == 28
        found.append({name: value.detach().cpu() for name, value in trainer.system.named_parameters()})
    plain, recorded = found
    for name, value in plain.items():
        torch.testing.assert_close(
            recorded[name], value, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_a_recorded_step_leaves_the_heads_of_other_tracks_without_gradients():
    case = case_of("joint")
    trainer = Trainer(case.build(), case.recipe.optimise, Machine(device="cuda", recorded=True), 0)
    for way in (case.ways[0], case.ways[3], case.ways[0]):
        trainer.gradients([case.rows(way)], {}, 1)
        heads = {
            name.split(".")[1]
            for name, p in trainer.system.named_parameters()
            if p.grad is not None and name.startswith("predict.")
        }
        assert heads == set(trainer.system.losses_of[way.track])
