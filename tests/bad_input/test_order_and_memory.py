"""Orders with nothing to predict, memories with nothing to remember, streams that were counted otherwise."""

import pytest

from unmask import recipes
from unmask.errors import UserError
from unmask.pretraining.same_request import check_same
from unmask.recipe_json import plain
from unmask.system import check_training


@pytest.mark.parametrize(
    "name, settings, expected",
    [
        (
            "xlnet",
            ["hide=Nothing"],
            "needs the targets 'tokens', because it puts predicted tokens at the end of a random order.*: set hide=Masked",
        ),
        ("roberta", ["see=Permuted"], "needs a second stream .*: set system.backbone=TransformerXL"),
        ("xlnet", ["see=Everything"], "needs tokens in a random order .*: set see=Permuted"),
        ("xlnet", ["system.backbone.streams=1"], "needs a second stream .*: set system.backbone.streams=2"),
        (
            "xlnet",
            ["see=Everything", "system.backbone.streams=1", "hide.replace=Mask"],
            "must not have seen the tokens that the next row predicts.*: set see=LeftToRight",
        ),
        (
            "xlnet",
            ["predict.tokens.layer=0"],
            "predict.tokens=Tokens needs .*, because it reads the vectors of the tokens, not a second stream.*: set hide.replace=Mask, or hide=Next",
        ),
        (
            "transformer-xl",
            ["arrange=FullRows"],
            "needs rows that continue the rows before them.*: set arrange=ContinuingRows",
        ),
    ],
)
def test_what_does_not_go_together_is_told_with_what_to_do(name, settings, expected):
    with pytest.raises(UserError, match=expected):
        check_training(recipes.get(name, size="tiny", settings=settings))


def test_without_a_memory_rows_may_come_in_any_order():
    check_training(recipes.get("transformer-xl", settings=["arrange=FullRows", "system.backbone.memory=0"]))
    check_training(recipes.get("gpt2", settings=["arrange=ContinuingRows"]))


@pytest.mark.parametrize(
    "settings, expected",
    [
        (
            ["system.backbone.clamp=100"],
            "a memory of 512 tokens is longer than the largest distance, .* raise backbone.clamp",
        ),
        (["system.backbone.memory=-1"], "backbone.memory must be 0 or more tokens, got -1"),
        (["system.backbone.streams=3"], "backbone.streams must be 1 or 2, got 3"),
        (["system.backbone.width=511"], "backbone.width must be even, got 511"),
        (["see.block=0"], "see.block must be none or 1 or more tokens, got 0"),
    ],
)
def test_impossible_values_are_refused(settings, expected):
    name = "xlnet" if settings[0].startswith("see") else "transformer-xl"
    with pytest.raises(UserError, match=expected):
        recipes.get(name, settings=settings)


def test_a_run_resumed_with_another_batch_is_told_what_differs(tmp_path):
    asked = {"recipe": plain(recipes.get("transformer-xl", size="tiny")), "seed": 0}
    check_same(tmp_path, asked | {"micro": [5]}, asked)
    other = plain(recipes.get("transformer-xl", size="tiny", settings=["schedule.0.rows=64", "shrink=true"]))
    with pytest.raises(
        UserError, match=r"another recipe \(schedule.0.rows was 32, got 64\): give the same recipe to resume it"
    ):
        check_same(tmp_path, asked, asked | {"recipe": other})
    with pytest.raises(UserError, match=r"another seed \(0, got 1\)"):
        check_same(tmp_path, asked, asked | {"seed": 1})


def test_targets_that_nothing_predicts_are_refused():
    recipe = recipes.get("gpt2", size="tiny", settings=["hide.ahead=2"])
    with pytest.raises(
        UserError, match=r"gives the targets 'ahead_2', but no objective reads them.*: lower hide.ahead"
    ):
        check_training(recipe)
