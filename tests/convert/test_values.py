"""Every value of every part: change one, and the exported model computes what ours does, or export names the value."""

import dataclasses
import types
import typing
from functools import cache
from pathlib import Path
from typing import Literal
from zlib import crc32

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import ALL, NAMES, assert_same_numbers, classifier, opened
from tests.convert.parts import recipe_of, tokenizer, tokenizer_for
from unmask import recipes
from unmask.convert import architecture_of, export_hf
from unmask.convert.exported_values import FATES, check_known, parts
from unmask.convert.families import all_values
from unmask.convert.tokenizer import check_roles
from unmask.errors import UserError
from unmask.hide import Keep, Masked
from unmask.infer.model import Model
from unmask.settings import override
from unmask.system.fit import check_fit

RECIPES = {name: recipe_of(name) for name in NAMES}
LABELS = {architecture_of(recipe).family.model_type: name for name, recipe in reversed(RECIPES.items())}  # one of each
RECIPES |= {f"{name} label": classifier(name, Path()).recipe for name in LABELS.values()}
# What a user may set in place of a whole part, or of a value that is no number.
INSTEAD = {
    "layout": ["[CLS] a [SEP] b [SEP]", "[CLS] a [SEP] [SEP] b [SEP]", "a [SEP] b [SEP]", "[CLS] a [SEP]"],
    "family": ["bert", "roberta", "gpt2", "xlnet", "nothing"],
    "arrange": ["Blocks", "NextSentence", "SentenceOrder", "ThreeWay", "FullRows"],
    "hide": ["Next", "Masked", "Masked(at=before)"],
    "see": ["Everything", "LeftToRight", "RightToLeft", "Prefix", "Permuted"],
    "tracks": ["{'left': Track(share=0.5, see=LeftToRight)}", "{'second': Track(share=0.25, see=Prefix)}"],
    "system.backbone.attention": ["Full", "Disentangled", "Disentangled(reach=5)"],
    "system.backbone.positions": ["Learned", "Learned(every=true)", "Sinusoidal", "NoPositions", "Rotary", "Rotary(theta=50)"],
    "system.backbone.local": ["none", "Local", "Local(window=4)"],
    "system.backbone.decoder": ["none", "MaskDecoder", "MaskDecoder(steps=1)"],
}  # fmt: skip


def other_values(hint, value):
    """Other values that a type allows."""
    found = []
    for option in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
        if typing.get_origin(option) is Literal:
            found += typing.get_args(option)
        elif option is type(None):
            found.append(None)
        elif option is bool:
            found += [True, False]
        elif option is int:
            found += [2 * (value or 1), (value or 6) // 2]
        elif option is float:
            found += [(value or 0.5) / 2, (value or 0.0) + 0.25]
    return [other for other in found if other is not value]


def settings_of(recipe):
    """Every other value that may be set, one at a time; and what the table says of that value."""
    for name, part in {name: part for name, part in parts(recipe) if "schedule" not in name}.items():
        hints = typing.get_type_hints(type(part))
        for field in dataclasses.fields(part):
            dotted, value = f"{name}.{field.name}".strip("."), getattr(part, field.name)
            for other in INSTEAD.get(dotted) or other_values(hints[field.name], value):
                yield f"{dotted}={'none' if other is None else other}", all_values()[type(part)][field.name]


def made(recipe, tokens, folder):
    """A model whose weights do not depend on how they were initialised."""
    system = recipe.system.build(recipe, tokens.vocabulary, 0)
    with torch.no_grad():
        for name, parameter in system.named_parameters():
            random = torch.Generator().manual_seed(crc32(name.encode()))
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.2 + (parameter.dim() == 1))
    return Model(system.eval(), recipe, tokens, folder)


def tokens_of(recipe):
    """GPT-2's own tokenizer has a single special token."""
    return tokenizer("gpt2") if recipe.name == "gpt2" else tokenizer_for(recipe)


def model_with(name, setting, folder):
    return made(override(RECIPES[name], [setting] if setting else []), tokens_of(RECIPES[name]), folder)


def is_a_model(name, setting):
    """Whether the value may be set at all; rows must hold the texts of these tests. Nothing is built here: there are many."""
    tokens = tokens_of(RECIPES[name])
    try:
        recipe = override(RECIPES[name], [setting])
        check_roles(tokens, recipe.layout)
        check_fit(recipe, tokens.vocabulary)
    except UserError:
        return False
    return recipe != RECIPES[name] and recipe.longest >= 64


@cache
def network_of(name):
    """What decides which values of a network are written, and how: recipes that agree in it need no second test."""
    family = architecture_of(RECIPES[name]).family
    return repr((family.config, family.names.network, family.names.block, family.needs_own_pad, "label" in name))


FIRST = {network_of(name): name for name in reversed(RECIPES)}  # of each kind of network, the first recipe
CASES = [
    (name, setting, fate)
    for name, recipe in RECIPES.items()
    for setting, fate in settings_of(recipe)
    if (FIRST[network_of(name)] == name or not setting.startswith("system.")) and is_a_model(name, setting)
]


def files_of(model, folder):
    report = export_hf(model, folder)
    return report, {path.name: path.read_bytes() for path in folder.iterdir()}


@cache
def files_of_recipe(name, folder):
    """What is exported of a recipe as it is."""
    return files_of(model_with(name, None, folder), folder / name)[1]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    return tmp_path_factory.mktemp("unchanged")


def assert_same(model, folder, report):
    network = opened(getattr(hf, report.architecture), folder)
    assert_same_numbers(model, folder, network, report.left_out)


@pytest.mark.parametrize("name, setting, fate", CASES, ids=[f"{name} {setting}" for name, setting, _ in CASES])
def test_a_changed_value_gives_the_same_numbers_or_a_refusal_that_names_it(tmp_path, unchanged, name, setting, fate):
    refusal = None
    try:
        model = model_with(name, setting, tmp_path)
        report, files = files_of(model, tmp_path / "hf")
    except UserError as mistake:
        refusal = str(mistake)
    if refusal is not None:
        assert fate in ("written", "checked")
        assert setting.partition("=")[0].split(".")[-1] in refusal
    elif fate in ("training", "left out"):
        assert files == files_of_recipe(name, unchanged)
    else:
        assert_same(model, tmp_path / "hf", report)


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipes_of_these_tests_are_exported_as_they_are(tmp_path, name):
    model = model_with(name, None, tmp_path)
    assert_same(model, tmp_path / "hf", files_of(model, tmp_path / "hf")[0])


def test_every_value_of_every_part_has_a_line_in_the_table():
    for part, known in all_values().items():
        assert set(known) == {field.name for field in dataclasses.fields(part)}, part


@pytest.mark.parametrize("name, variant", ALL)
def test_every_part_of_every_recipe_has_a_line_in_the_table(name, variant):
    check_known(recipes.get(name, size="tiny", variant=variant), all_values())


@dataclasses.dataclass(frozen=True)
class Shifted(Masked):
    """What nobody has told export about: targets one place earlier."""

    earlier: int = 1


def test_a_part_and_a_value_that_export_does_not_know_are_refused_by_name(tmp_path, monkeypatch):
    model = made(RECIPES["roberta"].replace(hide=Shifted()), tokenizer("byte"), tmp_path)
    with pytest.raises(UserError, match="what hide=Shifted is"):
        export_hf(model, tmp_path / "hf")
    monkeypatch.setitem(FATES, Shifted, FATES[Masked])
    with pytest.raises(UserError, match="what hide.earlier=1 is"):
        export_hf(model, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_a_stage_that_hides_something_else_is_refused_too(tmp_path):
    recipe = RECIPES["gpt2"]
    stage = dataclasses.replace(recipe.schedule[0], hide=Masked(replace=Keep()))
    with pytest.raises(UserError, match="schedule.0.hide=Masked: train with schedule.0.hide=Next"):
        export_hf(made(recipe.replace(schedule=(stage,)), tokenizer("gpt2"), tmp_path), tmp_path / "hf")


@pytest.mark.parametrize("name, arrange", [("bert", "SentenceOrder"), ("albert", "NextSentence")])
def test_a_sentence_head_that_answers_another_question_is_left_out_and_named(tmp_path, name, arrange):
    assert export_hf(model_with(name, f"arrange={arrange}", tmp_path), tmp_path / "hf").left_out == ("sentence",)
