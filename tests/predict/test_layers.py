"""What is read off each layer, and two tokens ahead, against explicit loops."""

import math

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.curves import Linear, Until
from unmask.predict import EveryLayer, Tokens
from unmask.settings import override
from unmask.system import objectives, weights
from unmask.system.cost import flops_per_token


@pytest.fixture(scope="module")
def recipe():
    return recipes.get(
        "char-transformer", size="tiny", settings=["system.backbone.width=32", "system.backbone.layers=3"]
    )


def test_every_layer_predicts_both_tokens_with_an_output_of_its_own(recipe):
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch, counts = system.hide(random_batch(rows=2, length=24, examples=2))
    with torch.no_grad():
        layers = system.backbone(batch)[0].layers
        losses = system.step(batch)[0]
    expected = {"tokens": (3, 1), "second": (3, 2)}
    expected |= {f"layer_{n}": (n, 1) for n in (1, 2)} | {f"layer_second_{n}": (n, 2) for n in (1, 2)}
    assert set(losses) == set(counts) == set(expected)
    for name, (layer, ahead) in expected.items():
        head, total, count = system.predict[name], 0.0, 0
        outputs = list(zip(head.weight.detach(), head.bias.detach(), strict=True))
        for row in range(2):
            for place in range(24 - ahead):
                if batch.example[row, place] < 0 or batch.example[row, place + ahead] != batch.example[row, place]:
                    continue
                scores = [float(layers[layer][row, place] @ w + b) for w, b in outputs]
                high = max(scores)
                total += math.log(sum(math.exp(s - high) for s in scores)) + high
                total -= scores[int(batch.ids[row, place + ahead])]
                count += 1
        assert float(losses[name].total) == pytest.approx(total, rel=1e-5), name
        assert float(losses[name].count) == float(counts[name]) == count
    assert len({id(head.weight) for head in system.predict.values()}) == len(expected)


def test_the_objectives_follow_from_the_number_of_layers(recipe):
    deep = override(recipe, ["system.backbone.layers=5"])
    assert set(objectives(deep)) - set(objectives(recipe)) == {f"layer{k}_{n}" for k in ("", "_second") for n in (3, 4)}
    assert objectives(deep)["layer_second_4"] == Tokens(tied=False, transform=False, target="ahead_2", layer=4)
    assert EveryLayer().each("x", 1) == {}


def test_layer_l_of_n_stops_after_l_of_2n_of_the_training(recipe):
    for layers in (3, 12):
        deep = override(recipe, [f"system.backbone.layers={layers}"])
        found = weights(deep, deep.schedule[0])
        for layer in range(1, layers):
            end = layer / (2 * layers)
            for name, value in ((f"layer_{layer}", 1.0), (f"layer_second_{layer}", 0.5)):
                assert [found[name].at(done) for done in (0.0, end - 1e-9, end, 1.0)] == [value, value, 0.0, 0.0]
        assert found["second"] == 0.5
        assert "tokens" not in found


def test_a_weight_of_all_layers_gives_way_to_that_of_one(recipe):
    changed = override(recipe, ["schedule.0.weights.layer=Linear", "schedule.0.weights.layer_2=0.25"])
    found = weights(changed, changed.schedule[0])
    assert (found["layer_1"], found["layer_2"]) == (Linear(), 0.25)
    assert found["layer_second_1"] == Until(0.5 / 3, 0.5)
    assert recipe.system.build(changed, vocabulary(), 0) is not None


def test_operations_are_counted_for_every_output(recipe):
    alone = recipe.replace(
        predict={"tokens": recipe.predict["tokens"]}, schedule=(override(recipe.schedule[0], ["weights={}"]),)
    )
    stage = override(recipe.schedule[0], ["length=64"])
    more = flops_per_token(recipe, 261, stage) - flops_per_token(alone, 261, stage)
    assert more == 3 * 5 * 2 * 32 * 261  # forward and back, five outputs more, a product and a sum each
