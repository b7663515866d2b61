"""Every value of every part: change one, and the exported model computes what ours does, or export names the value."""

import dataclasses
import types
import typing
from functools import cache
from typing import Literal
from zlib import crc32

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import (
    ALL,
    NAMES,
    answers_of,
    assert_same_answers,
    classifier_recipe,
    opened,
    texts_for,
)
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
RECIPES |= {f"{name} label": classifier_recipe(name) for name in LABELS.values()}
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
    """Every other value that may be set, one at a time; and what the table says of that value.

    The lines that write a number of a network do not read its heads. The pretrained networks try two other values of each
    number, and networks with a label one.
    """
    for name, part in {name: part for name, part in parts(recipe) if "schedule" not in name}.items():
        hints = typing.get_type_hints(type(part))
        for field in dataclasses.fields(part):
            dotted, value = f"{name}.{field.name}".strip("."), getattr(part, field.name)
            others = INSTEAD.get(dotted) or other_values(hints[field.name], value)
            once = recipe.task is not None and name.startswith("system.") and hints[field.name] in (int, float)
            for other in others[:1] if once else others:
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


@cache
def first_recipes():
    """Of each kind of network, the first recipe."""
    return {network_of(name): name for name in reversed(RECIPES)}


def cases(name):
    """The settings of a recipe, each with what the table says of its value."""
    first = first_recipes()[network_of(name)] == name
    for setting, fate in settings_of(RECIPES[name]):
        if (first or not setting.startswith("system.")) and is_a_model(name, setting):
            yield setting, fate


class Export:
    """What is exported of a model; a folder with the same bytes as an earlier one is not opened a second time."""

    def __init__(self, model, folder, opened_before):
        self.model, self.folder, self.opened_before = model, folder, opened_before
        self.report = export_hf(model, folder)
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def assert_same(self):
        texts = texts_for(self.model)
        key = (self.report.architecture, len(texts), *self.files.items())
        if key not in self.opened_before:
            network = opened(getattr(hf, self.report.architecture), self.folder)
            self.opened_before[key] = answers_of(network, self.folder, texts)
        assert_same_answers(self.model, self.opened_before[key], self.report.left_out)


@pytest.mark.parametrize("name", RECIPES)
def test_each_changed_value_gives_the_same_numbers_or_a_refusal_that_names_it(tmp_path, name):
    before: dict = {}
    unchanged = Export(model_with(name, None, tmp_path), tmp_path / "unchanged", before)
    unchanged.assert_same()
    for number, (setting, fate) in enumerate(cases(name)):
        try:
            check(name, setting, fate, unchanged, tmp_path / str(number))
        except BaseException as error:
            error.add_note(f"with {name} {setting}")
            raise


def check(name, setting, fate, unchanged, folder):
    refusal = None
    try:
        architecture_of(override(RECIPES[name], [setting]))  # most are refused here, before a network is built
        found = Export(model_with(name, setting, folder), folder, unchanged.opened_before)
    except UserError as mistake:
        refusal = str(mistake)
    if refusal is not None:
        assert fate in ("written", "checked")
        assert setting.partition("=")[0].split(".")[-1] in refusal
    elif fate in ("training", "left out"):
        assert found.files == unchanged.files
    else:
        found.assert_same()


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
