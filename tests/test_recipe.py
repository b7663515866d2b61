"""Recipes take dotted settings, refuse wrong ones with a hint, and survive JSON."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from unmask import curves, data, hide, recipes, see
from unmask.errors import UserError, unknown
from unmask.recipe import Stage
from unmask.run import from_json, to_json
from unmask.settings import flat, override
from unmask.system import cost


@pytest.fixture(scope="module")
def bert():
    return recipes.get("bert", size="tiny")


@pytest.mark.parametrize(
    "setting, read, value",
    [
        ("hide.budget=0.2", lambda r: r.hide.budget, 0.2),
        ("hide.budget=1", lambda r: r.hide.budget, 1.0),
        ("hide.copies=10", lambda r: r.hide.copies, 10),
        ("hide.copies=none", lambda r: r.hide.copies, None),
        ("hide.units=Words", lambda r: r.hide.units, hide.Words()),
        ("hide.units=Words()", lambda r: r.hide.units, hide.Words()),
        ("arrange=Blocks(cross=false)", lambda r: r.arrange, data.Blocks(cross=False)),
        ("arrange=FullRows", lambda r: r.arrange, data.FullRows()),
        ("see=LeftToRight", lambda r: r.see, see.LeftToRight()),
        ("schedule.1.length=256", lambda r: r.schedule[1].length, 256),
        ("schedule.0.weights={'tokens': 2.0}", lambda r: r.schedule[0].weights, {"tokens": 2.0}),
        ("system.backbone.layers=3", lambda r: r.system.backbone.layers, 3),
        ("predict.tokens.tied=false", lambda r: r.predict["tokens"].tied, False),
        ("schedule.0.rows=4_096", lambda r: r.schedule[0].rows, 4096),
        ("optimise.rate=1e-4", lambda r: r.optimise.rate, 1e-4),
        ("schedule.0.weights.sentence=0.3", lambda r: r.schedule[0].weights, {"sentence": 0.3}),
        ("schedule.0.weights.tokens=2", lambda r: r.schedule[0].weights, {"tokens": 2.0}),
        (
            "schedule.0.weights.sentence=Linear(first=1.0, last=0)",
            lambda r: r.schedule[0].weights["sentence"],
            curves.Linear(first=1.0, last=0.0),
        ),
        ("schedule.1.weights.tokens=Until", lambda r: r.schedule[1].weights["tokens"], curves.Until()),
        (" hide.budget = 0.3 ", lambda r: r.hide.budget, 0.3),
    ],
)
def test_a_dotted_setting_changes_one_value(bert, setting, read, value):
    changed = override(bert, [setting])
    found = read(changed)
    assert found == value
    assert type(found) is type(value)
    before, after = flat(bert), flat(changed)
    prefix = setting.split("=")[0].strip()
    assert all(before[name] == after[name] for name in before.keys() & after.keys() if not name.startswith(prefix))


def test_the_recipe_given_stays_as_it_was(bert):
    before = to_json(bert)
    override(bert, ["hide.budget=0.9", "schedule.0.weights={'tokens': 2.0}"])
    assert to_json(bert) == before


def test_settings_are_applied_at_once_in_any_order(bert):
    both = override(bert, ["schedule.0.share=0.5", "schedule.1.share=0.5"])
    assert [stage.share for stage in both.schedule] == [0.5, 0.5]
    shares = ["hide.replace.random=0.2", "hide.replace.mask=0.7"]
    assert override(bert, shares).hide == dataclasses.replace(bert.hide, replace=hide.Mask(mask=0.7, random=0.2))
    for order in (["arrange.cross=false", "arrange=Blocks"], ["arrange=Blocks", "arrange.cross=false"]):
        assert override(bert, order).arrange == data.Blocks(cross=False)


def test_the_later_of_two_equal_settings_counts_and_none_changes_nothing(bert):
    assert override(bert, ["hide.budget=0.2", "hide.budget=0.3"]).hide.budget == 0.3
    assert override(bert, []) == bert


@pytest.mark.parametrize(
    "setting, message",
    [
        ("hide.budgt=0.2", "unknown setting 'hide.budgt': did you mean hide.budget"),
        ("hid.budget=0.2", "unknown setting 'hid.budget'"),
        ("schedule.0.row=5", "did you mean schedule.0.rows"),
        ("schedule.2.length=64", "unknown setting 'schedule.2.length'"),
        ("hide.budget.x=1", "unknown setting 'hide.budget.x'"),
        ("predict.token.tied=true", "unknown setting 'predict.token.tied'"),
        ("hide.budget", "written as NAME=VALUE, got 'hide.budget'"),
        ("hide.budget=15", "write 0.15 for 15%"),
        (
            "hide.budget=much",
            "unknown part for hide.budget, which takes a number or a part, 'much': known: After, Exponential, InTurn, Linear, Slanted, Until",
        ),
        ("hide.budget=15%", "hide.budget must be a number"),
        ("hide.budget=true", "hide.budget must be a number or a curve, got 'true'"),
        ("hide.copies=1.5", "hide.copies must be a whole number or none, got '1.5'"),
        ("schedule.0.rows=none", "schedule.0.rows must be a whole number"),
        ("arrange=Blokcs", "unknown part for arrange 'Blokcs': did you mean Blocks"),
        ("arrange=Blocks(cros=false)", "unknown setting 'arrange.cros': did you mean arrange.cross"),
        ("arrange=Blocks(cross=1)", "arrange.cross must be true or false, got '1'"),
        ("arrange=Blocks(", "arrange must be a part, such as NextSentence"),
        ("arrange=5", "arrange must be a part"),
        ("schedule.0.share=0.5", "must add up to 1, got 0.6"),
        ("schedule.0.length=4", "8 or more tokens, got 4"),
        ("schedule.0.share=0", "schedule.share must be in"),
        ("schedule.0.rows=0", "schedule.rows must be 1 or more, got 0"),
        ("optimise.curve=square", "optimise.curve must be one of"),
        (
            "schedule.0.weights.tokens=much",
            "unknown part for schedule.0.weights.tokens, which takes a number or a part, 'much': known: After, Exponential, InTurn, Linear",
        ),
        ("schedule.0.weights.tokens=Lin(first=1)", "did you mean Linear"),
        (
            "schedule.0.weights.tokens=AdamW",
            "unknown part for schedule.0.weights.tokens, which takes a number or a part, 'AdamW'",
        ),
        ("schedule.0.weights.tokens=Linear(frst=1)", "unknown setting 'schedule.0.weights.tokens.frst'"),
        (
            "schedule.0.weights.tokens=Linear(1, 0)",
            "must be a number, or one of After, Exponential, InTurn, Linear, Slanted, Until",
        ),
        ("schedule.0.weights.tokens=true", "schedule.0.weights.tokens"),
        ("schedule.0.weights.tokens.last=1", "unknown setting 'schedule.0.weights.tokens.last'"),
        ("schedule.0.weights={'tokens': 'much'}", "must be a number or a curve"),
        ("schedule.0.weights.tokens=Until(share=15)", "the share of Until must be in [0, 1], got 15"),
        ("schedule.0.hide=Words", "unknown part for schedule.0.hide 'Words'"),
        ("schedule.0.hide=3", "schedule.0.hide must be a part or a list or none, got '3'"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong(bert, setting, message):
    with pytest.raises(UserError) as caught:
        override(bert, [setting])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "setting",
    ["arrange=Texts", "hide=Words", "hide.units=Mask", "hide.units=Nothing", "arrange=Blocks(true)", "schedule=[1]"],
)
def test_a_part_or_value_that_does_not_belong_there_is_a_mistake(bert, setting):
    with pytest.raises(UserError):
        override(bert, [setting])


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_is_the_same_after_json(name):
    recipe = recipes.get(name, settings=["schedule.0.weights={'tokens': 0.5}"])
    assert from_json(to_json(recipe)) == recipe
    assert isinstance(from_json(to_json(recipe)).schedule, tuple)


def test_curves_and_what_is_set_of_them_survive_json(bert):
    settings = ["schedule.0.weights.tokens=Exponential(first=0.2)", "schedule.0.weights.sentence=Linear"]
    recipe = override(bert, settings)
    assert from_json(to_json(recipe)) == recipe
    assert flat(recipe)["schedule.0.weights.tokens.last"] == 0.1
    later = override(recipe, ["schedule.0.weights.tokens.last=0.05"])
    assert later.schedule[0].weights == {"tokens": curves.Exponential(0.2, 0.05), "sentence": curves.Linear()}


@pytest.mark.parametrize("name", ["tokns", "tokens_1"])
def test_the_weight_of_a_loss_that_is_not_predicted_is_refused_with_those_that_are(bert, name):
    recipe = override(bert, [f"schedule.1.weights.{name}=0.3"])
    with pytest.raises(
        UserError, match=f"weight for the loss '{name}', but there is no such loss: the losses are tokens, sentence"
    ):
        cost(recipe, 200)


def test_json_names_the_part_of_every_object(bert):
    written = json.loads(to_json(bert))
    assert written["hide"]["units"]["part"] == "unmask.hide.Tokens"
    assert written["hide"]["budget"] == 0.15


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"part": "os.system"}', "only name parts of unmask"),
        ('{"part": "unmask.hide.Masked"}', "not a recipe"),
        ('{"part": "unmask.hide.Gone"}', "does not have: unmask.hide.Gone"),
        ('{"part": "unmask.gone.Mask"}', "that this version of unmask does not have"),
        ('{"part": "unmask.errors.require"}', "does not have: unmask.errors.require"),
        ('{"part": "unmask.errors.UserError"}', "unmask.errors.UserError is not a part"),
        ("[]", "not a recipe"),
        ("3", "not a recipe"),
        ('{"part": "unmask.hide.Masked", "budgt": 0.1}', "budgt"),
        ('{"part": "unmask.recipe.Recipe", "name": "x"}', "Recipe"),
        ("{broken", "JSON"),
    ],
)
def test_json_that_is_no_recipe_is_a_mistake(text, message):
    with pytest.raises(UserError) as caught:
        from_json(text)
    assert message in str(caught.value)


def test_flat_has_every_value_under_its_dotted_name(bert):
    values = flat(bert)
    assert values["hide"] == "Masked"
    assert values["hide.units"] == "Tokens"
    assert values["hide.budget"] == 0.15
    assert values["schedule.1.length"] == 512
    assert "" not in values


def test_stages_must_add_up():
    with pytest.raises(UserError, match="must add up to 1"):
        recipes.get("bert").replace(schedule=(Stage(share=0.5),))


def test_unknown_names_offer_the_nearest_or_all():
    assert "did you mean bert" in str(unknown("recipe", "brt", ["bert", "gpt2"]))
    assert str(unknown("recipe", "zzz", ["b", "a"])) == "unknown recipe 'zzz': known: a, b"
    with pytest.raises(UserError, match="did you mean bert"):
        recipes.get("berd")
    with pytest.raises(UserError, match="unknown size of bert"):
        recipes.get("bert", size="huge")
    with pytest.raises(UserError, match="unknown variant of bert"):
        recipes.get("bert", variant="other")


def test_a_star_means_every_stage():
    recipe = recipes.get("bert", settings=["schedule.*.length=64"])
    assert [stage.length for stage in recipe.schedule] == [64, 64]


WITHOUT = """
import sys
for name in ("triton", "transformers", "rjieba", "ahocorasick_rs", "pyarrow", "matplotlib", "tensorboard"):
    sys.modules[name] = None  # importing it fails, as where it is not installed
from unmask import recipes
from unmask.run import from_json, to_json
for name in recipes.names():
    recipe = recipes.get(name, size="tiny")
    assert from_json(to_json(recipe)) == recipe, name
"""


def test_recipes_are_read_where_only_what_the_package_requires_is_installed():
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
