"""A setting replaces a part by any part of its axis, and what both parts have stays as it was."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace

import pytest

from unmask import curves, data, recipes
from unmask.axes import Arrange, Curve
from unmask.errors import UserError
from unmask.run import from_json, to_json
from unmask.settings import flat, override


def size_of(backbone) -> tuple[int, int, int]:
    return backbone.layers, backbone.width, backbone.heads


def test_a_backbone_is_replaced_by_another_of_its_axis_and_keeps_its_size():
    usual = recipes.get("roberta", size="tiny").system.backbone
    changed = recipes.get("roberta", size="tiny", settings=["system.backbone=TransformerXL"]).system.backbone
    assert type(changed).__name__ == "TransformerXL"
    assert size_of(changed) == size_of(usual) == (2, 128, 2)


def test_a_system_is_replaced_and_keeps_its_backbone():
    usual = recipes.get("roberta", size="tiny").system.backbone
    setting = "system=GeneratorDiscriminator(generator=Transformer(layers=2, width=64, heads=1))"
    changed = recipes.get("roberta", size="tiny", settings=[setting]).system
    assert type(changed).__name__ == "GeneratorDiscriminator"
    assert changed.backbone == usual


def test_a_value_that_is_given_counts_more_than_one_that_is_kept():
    setting = "system.backbone=TransformerXL(layers=3, memory=8)"
    backbone = recipes.get("roberta", size="tiny", settings=[setting, "system.backbone.memory=16"]).system.backbone
    assert (backbone.layers, backbone.width, backbone.memory) == (3, 128, 16)


def test_a_part_in_a_part_keeps_its_values_too():
    setting = "system=Single(backbone=Transformer(layers=3))"
    backbone = recipes.get("roberta", size="tiny", settings=[setting]).system.backbone
    assert size_of(backbone) == (3, 128, 2)


def test_an_optimiser_keeps_its_rate():
    usual = recipes.get("roberta", size="tiny").optimise
    changed = recipes.get("roberta", size="tiny", settings=["optimise=LAMB"]).optimise
    assert type(changed).__name__ == "LAMB"
    assert (changed.rate, changed.decay) == (usual.rate, usual.decay)


@pytest.mark.parametrize("setting", ["system.backbone=Single", "hide=Words", "see=Blocks", "predict.tokens=Words",
                                     "tokenizer=Transformer", "system=TransformerXL", "optimise=Everything"])  # fmt: skip
def test_a_part_of_another_axis_is_refused(setting):
    with pytest.raises(UserError, match=f"unknown part for {setting.split('=')[0]}"):
        recipes.get("roberta", size="tiny", settings=[setting])


@dataclass(frozen=True)
class Holder:
    """Fields that have no part yet."""

    arrange: Arrange | None = None
    several: tuple[Arrange, ...] = ()
    weight: float | Curve = 1.0
    limit: int | Curve | None = None
    named: dict[str, Arrange] = field(default_factory=dict)


@dataclass(frozen=True)
class Demanding(curves.Linear):
    """A part with a value that has no default."""

    rate: float = field(kw_only=True)


@pytest.mark.parametrize(
    "setting, expected",
    [
        ("arrange=Blocks", Holder(arrange=data.Blocks())),
        ("arrange=Blocks(cross=false)", Holder(arrange=data.Blocks(cross=False))),
        ("arrange=none", Holder()),
        ("several=(Blocks(cross=false), FullRows)", Holder(several=(data.Blocks(cross=False), data.FullRows()))),
        ("several=[FullRows()]", Holder(several=(data.FullRows(),))),
        ("weight=2", Holder(weight=2.0)),
        ("weight=Linear(last=0.5)", Holder(weight=curves.Linear(last=0.5))),
        ("limit=3", Holder(limit=3)),
        ("limit=Until", Holder(limit=curves.Until())),
        ("named.first=Blocks", Holder(named={"first": data.Blocks()})),
        ("named={'a': Blocks(), 'b': FullRows}", Holder(named={"a": data.Blocks(), "b": data.FullRows()})),
    ],
)
def test_the_hint_of_a_field_says_what_it_takes(setting, expected):
    assert override(Holder(), [setting]) == expected


@pytest.mark.parametrize(
    "setting, message",
    [
        (
            "weight=none",
            "weight must be a number or a curve, got 'None'|weight must be a number or a curve, got 'none'",
        ),
        (
            "weight=Blocks",
            "unknown part for weight, which takes a number or a part, 'Blocks': known: After, Demanding, Exponential, InTurn, Linear, Slanted, Until",
        ),
        ("limit=1.5", "limit must be a whole number or a curve or none, got '1.5'"),
        ("arrange=3", "arrange must be a part or none, got '3'"),
        ("several=(Blocks, 3)", "several.1 must be a part, such as Blocks"),
        ("several=Blocks", "several must be a list"),
        ("several.0=Blocks", "unknown setting 'several.0'"),
        ("named.first.cross=true", "unknown setting 'named.first.cross'"),
        ("weight=Demanding", "Demanding for weight needs rate: write weight=Demanding\\(rate=...\\)"),
    ],
)
def test_what_a_field_does_not_take_is_refused(setting, message):
    with pytest.raises(UserError, match=message):
        override(Holder(), [setting], own=[Demanding])


def test_a_part_that_is_handed_in_may_be_named():
    assert override(Holder(), ["weight=Demanding(rate=2)"], own=[Demanding]).weight == Demanding(rate=2.0)


@pytest.fixture
def two_rules():
    usual = recipes.get("bert", size="tiny")
    return usual.replace(hide=(usual.hide, usual.hide))


def test_rules_of_hide_are_set_by_their_numbers_or_all_at_once(two_rules):
    changed = override(two_rules, ["hide.0.budget=0.2", "hide.1.units=Words"])
    assert [rule.budget for rule in changed.hide] == [0.2, 0.15]
    assert [type(rule.units).__name__ for rule in changed.hide] == ["Tokens", "Words"]
    assert [rule.budget for rule in override(two_rules, ["hide.*.budget=0.4"]).hide] == [0.4, 0.4]
    assert override(two_rules, ["hide.*.budget=0.4", "hide.1.budget=0.1"]).hide[1].budget == 0.1
    assert flat(changed)["hide.1.units"] == "Words"
    assert from_json(to_json(changed)) == changed


def test_a_star_is_the_one_rule_where_there_is_one():
    recipe = recipes.get("bert", size="tiny", settings=["hide.*.budget=0.4"])
    assert recipe.hide.budget == 0.4


def test_a_rule_that_is_not_named_is_asked_for(two_rules):
    with pytest.raises(UserError, match=r"unknown setting 'hide.budget': did you mean hide.[01].budget"):
        override(two_rules, ["hide.budget=0.2"])
    with pytest.raises(UserError, match="unknown setting 'hide.2.budget'"):
        override(two_rules, ["hide.2.budget=0.2"])


def test_a_rule_becomes_several_and_several_become_one(two_rules):
    name = type(two_rules.hide[0]).__name__
    assert override(two_rules, [f"hide={name}(budget=0.3)"]).hide == replace(two_rules.hide[0], budget=0.3)
    one = two_rules.replace(hide=two_rules.hide[0])
    assert override(one, [f"hide=({name}(budget=0.3),)"]).hide == (replace(one.hide, budget=0.3),)
    both = override(two_rules, [f"hide=[{name}(budget=0.3), {name}(units=Words)]"]).hide
    assert [(rule.budget, type(rule.units).__name__) for rule in both] == [(0.3, "Tokens"), (0.15, "Words")]


def test_listing_recipes_and_reading_settings_do_not_import_torch():
    code = "import sys, unmask.recipes, unmask.settings; unmask.recipes.entries(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_values_of_a_part_without_names_are_shown_with_their_names():
    for wrong in ("Linear(0.4, 0.15)", "Linear(0.4, last=0.15)"):
        with pytest.raises(UserError) as refused:
            recipes.get("roberta", size="tiny", settings=[f"hide.budget={wrong}"])
        assert str(refused.value).endswith(": write hide.budget=Linear(first=0.4, last=0.15)")
    made = recipes.get("roberta", size="tiny", settings=[str(refused.value).split("write ")[1]])
    assert made.hide.budget.last == 0.15


def test_a_part_whose_field_has_the_name_of_a_method_does_not_fit():
    with pytest.raises(UserError, match="score 'Span': known: Concat, Dot, General$"):  # Span(scorer=...) is a task
        recipes.get("cove", size="tiny", settings=["system.backbone.score=Span"])
