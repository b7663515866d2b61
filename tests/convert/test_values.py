"""Every value of every part: change one, and the exported model computes what ours does, or export names the value."""

import dataclasses
import importlib
import types
import typing
from functools import cache
from pathlib import Path
from typing import Literal
from zlib import crc32

import pytest
import torch
import transformers as hf

from tests.convert.parts import PAIRS, PARITY, TEXTS, look, recipe_of, score, tokenizer
from tests.convert.test_export import KINDS, classifier, from_text, opened
from unmask import recipes
from unmask.convert import export_hf
from unmask.convert.exported_values import FATES, check_known, parts
from unmask.convert.tokenizer import check_roles
from unmask.errors import UserError
from unmask.hide import Mask
from unmask.infer.model import Model
from unmask.recipe import override

XLNET = ["system.backbone.head=8", "system.backbone.memory=12", "system.backbone.length=96"]
RECIPES = {
    name: recipe_of(name, *(XLNET if name == "xlnet" else ()))
    for name in ("bert", "roberta", "electra", "albert", "gpt", "gpt2", "ernie", "unilm", "spanbert", "xlnet")
} | {f"{name} label": classifier(name, Path()).recipe for name in ("bert", "electra", "gpt2")}
# What a user may set in place of a whole part, or of a value that is no number.
INSTEAD = {
    "layout": ["[CLS] a [SEP] b [SEP]", "[CLS] a [SEP] [SEP] b [SEP]", "a [SEP] b [SEP]", "[CLS] a [SEP]"],
    "family": ["bert", "roberta", "gpt2", "xlnet", "nothing"],
    "arrange": ["Blocks", "NextSentence", "SentenceOrder", "ThreeWay", "Stream"],
    "hide": ["Next", "Mask"],
    "see": ["Everything", "LeftToRight", "RightToLeft", "Prefix", "Permuted", "Mixed",
            "Mixed(everything=0, prefix=0.5, left=0.25, right=0.25)"],
}  # fmt: skip
HEADS = {"tokens": ("prediction_logits", "logits"), "sentence": ("seq_relationship_logits", "sop_logits", "logits")}


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
            found += [value / 2, value + 0.25]
    return [other for other in found if other is not value]


def settings_of(recipe):
    """Every other value that may be set, one at a time; and what the table says of that value."""
    for name, part in {name: part for name, part in parts(recipe) if "schedule" not in name}.items():
        hints = typing.get_type_hints(type(part))
        for field in dataclasses.fields(part):
            dotted, value = f"{name}.{field.name}".strip("."), getattr(part, field.name)
            for other in INSTEAD.get(dotted) or other_values(hints[field.name], value):
                yield f"{dotted}={'none' if other is None else other}", FATES[type(part)][field.name]


def made(recipe, tokens, folder):
    """A model whose weights do not depend on how they were initialised."""
    check_roles(tokens, recipe.layout)
    system = recipe.system.build(recipe, tokens.vocabulary, 0)
    with torch.no_grad():
        for name, parameter in system.named_parameters():
            random = torch.Generator().manual_seed(crc32(name.encode()))
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.2 + (parameter.dim() == 1))
    return Model(system.eval(), recipe, tokens, folder)


def tokens_of(name):
    return tokenizer("unigram" if name == "xlnet" else KINDS.get(name.split()[0], "wordpiece"))


def model_with(name, setting, folder):
    return made(override(RECIPES[name], [setting] if setting else []), tokens_of(name), folder)


def is_a_model(name, setting):
    """Whether the value may be set at all; rows must hold the texts of these tests."""
    try:
        model = model_with(name, setting, Path())
    except UserError:
        return False
    return model.recipe != RECIPES[name] and model.length >= 64


LIKE_BERT = ("ernie", "unilm", "spanbert")  # their network is bert's
CASES = [
    (name, setting, fate)
    for name, recipe in RECIPES.items()
    for setting, fate in settings_of(recipe)
    if not (name in LIKE_BERT and setting.startswith("system.")) and is_a_model(name, setting)
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


def assert_same_numbers(model, folder, report):
    """Every vector and every score that transformers computes from raw text is ours."""
    texts = PAIRS if "b" in model.recipe.layout.split() else TEXTS
    theirs, encoded = from_text(opened(getattr(hf, report.architecture), folder), folder, texts)
    there = encoded["attention_mask"].bool()
    batch, hidden = look(model, texts)
    assert torch.equal(encoded["input_ids"][there], batch.ids[batch.real])
    for mine, other in zip(hidden.layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(mine[batch.real], other[there], **PARITY)
    for head in (head for head in model.system.predict if head not in report.left_out):
        mine = score(model, head, batch, hidden)
        other = theirs[next(name for name in HEADS.get(head, ("logits",)) if name in theirs)]
        per_token = mine.shape[:2] == batch.shape
        both = (mine[batch.real], other[there]) if per_token else (mine, other)
        torch.testing.assert_close(*both, **PARITY)


@pytest.mark.parametrize("name, setting, fate", CASES, ids=[f"{name} {setting}" for name, setting, _ in CASES])
def test_a_changed_value_gives_the_same_numbers_or_a_refusal_that_names_it(tmp_path, unchanged, name, setting, fate):
    model, refusal = model_with(name, setting, tmp_path), None
    try:
        report, files = files_of(model, tmp_path / "hf")
    except UserError as mistake:
        refusal = str(mistake)
    if refusal is not None:
        assert fate in ("written", "checked")
        assert setting.partition("=")[0].split(".")[-1] in refusal
    elif fate in ("training", "left out"):
        assert files == files_of_recipe(name, unchanged)
    else:
        assert_same_numbers(model, tmp_path / "hf", report)


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipes_of_these_tests_are_exported_as_they_are(tmp_path, name):
    model = model_with(name, None, tmp_path)
    assert_same_numbers(model, tmp_path / "hf", files_of(model, tmp_path / "hf")[0])


def test_every_value_of_every_part_has_a_line_in_the_table():
    for part, known in FATES.items():
        assert set(known) == {field.name for field in dataclasses.fields(part)}, part


@pytest.mark.parametrize("name", recipes.names())
def test_every_part_of_every_recipe_has_a_line_in_the_table(name):
    for variant in importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}").VARIANTS:
        check_known(recipes.get(name, size="tiny", variant=variant))


@dataclasses.dataclass(frozen=True)
class Shifted(Mask):
    """What nobody has told export about: targets one place earlier."""

    earlier: int = 1


def test_a_part_and_a_value_that_export_does_not_know_are_refused_by_name(tmp_path, monkeypatch):
    model = made(RECIPES["roberta"].replace(hide=Shifted()), tokenizer("byte"), tmp_path)
    with pytest.raises(UserError, match="what hide=Shifted is"):
        export_hf(model, tmp_path / "hf")
    monkeypatch.setitem(FATES, Shifted, FATES[Mask])
    with pytest.raises(UserError, match="what hide.earlier=1 is"):
        export_hf(model, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_a_stage_that_hides_something_else_is_refused_too(tmp_path):
    recipe = RECIPES["gpt2"]
    stage = dataclasses.replace(recipe.schedule[0], hide=Mask(mask=0.0))
    with pytest.raises(UserError, match="schedule.0.hide=Mask: train with schedule.0.hide=Next"):
        export_hf(made(recipe.replace(schedule=(stage,)), tokenizer("gpt2"), tmp_path), tmp_path / "hf")


@pytest.mark.parametrize("name, arrange", [("bert", "SentenceOrder"), ("albert", "NextSentence")])
def test_a_sentence_head_that_answers_another_question_is_left_out_and_named(tmp_path, name, arrange):
    assert export_hf(model_with(name, f"arrange={arrange}", tmp_path), tmp_path / "hf").left_out == ("sentence",)
