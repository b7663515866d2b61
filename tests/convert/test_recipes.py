"""Every recipe and variant: transformers opens what is exported and computes the same, or export says why it cannot."""

import json
import re

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import (
    ALL,
    EXPORTED,
    NAMES,
    REFUSED,
    assert_same_numbers,
    classifier,
    classifier_recipe,
    from_text,
    opened_by_auto,
    refusal,
)
from tests.convert.parts import PARITY, TEXTS, look, model_of, recipe_of, tokenizer_for, weights
from unmask import recipes
from unmask.convert import architecture_of, export_hf, import_hf
from unmask.convert.families import families
from unmask.infer.model import save_run
from unmask.settings import flat

FAMILIES = families().values()


def model_with(name, variant, folder):
    recipe = recipes.get(name, size="tiny", variant=variant)
    return model_of(recipe, tokenizer_for(recipe), folder)


@pytest.mark.parametrize("name, variant", EXPORTED)
def test_a_pretrained_model_is_the_same_in_transformers_from_raw_text(tmp_path, name, variant):
    model = model_with(name, variant, tmp_path)
    made = export_hf(model, tmp_path / "hf")
    assert hf.AutoConfig.from_pretrained(tmp_path / "hf").architectures == [made.architecture]
    network = opened_by_auto(made.architecture, tmp_path / "hf")
    assert_same_numbers(model, tmp_path / "hf", network, made.left_out)


@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_is_the_same_in_transformers_from_raw_text(tmp_path, name):
    model = classifier(name, tmp_path)
    made = export_hf(model, tmp_path / "hf")
    network = opened_by_auto(made.architecture, tmp_path / "hf")
    assert made.architecture.endswith("ForSequenceClassification")
    assert_same_numbers(model, tmp_path / "hf", network, made.left_out)
    assert network.config.id2label == {0: "bad", 1: "fair", 2: "good"}
    assert network.config.label2id["good"] == 2


@pytest.mark.parametrize("name", NAMES)
def test_the_bare_network_opens_with_auto_model(tmp_path, name):
    model = model_with(name, "paper", tmp_path)
    assert sorted(export_hf(model, tmp_path / "hf").files) == sorted(path.name for path in (tmp_path / "hf").iterdir())
    theirs, encoded = from_text(hf.AutoModel.from_pretrained(tmp_path / "hf").eval(), tmp_path / "hf", TEXTS)
    batch, hidden = look(model, TEXTS)
    there = encoded["attention_mask"].bool()
    mine = (
        hidden.last if batch.decoder is None else hidden.for_prediction
    )  # their last vectors are those of the decoder
    torch.testing.assert_close(mine[batch.real], theirs.last_hidden_state[there], **PARITY)


@pytest.mark.parametrize("name, theirs", [
    (name, theirs) for name in NAMES
    if (theirs := architecture_of(recipe_of(name)).family.config.attention_dropout) is not None
])  # fmt: skip
def test_attention_dropout_is_written_where_the_architecture_has_it(tmp_path, name, theirs):
    for share in (0.0, 0.1):
        recipe = recipe_of(name, f"system.backbone.attention_dropout={share}")
        export_hf(model_of(recipe, tokenizer_for(recipe), tmp_path), tmp_path / f"hf{share}")
        assert getattr(hf.AutoConfig.from_pretrained(tmp_path / f"hf{share}"), theirs) == share


def pretrained(name, folder):
    recipe = recipe_of(name)
    return model_of(recipe, tokenizer_for(recipe), folder)


ROUND_TRIPS = [(pretrained, name) for name in NAMES if not architecture_of(recipe_of(name)).left_out]
ROUND_TRIPS += [(classifier, name) for name in NAMES if not architecture_of(classifier_recipe(name)).left_out]


@pytest.mark.parametrize("build, name", ROUND_TRIPS)
def test_import_of_an_export_has_identical_weights(tmp_path, build, name):
    model = build(name, tmp_path)
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "hf")
    report = import_hf(tmp_path / "hf", tmp_path / "b")
    assert (report.missing, report.left_over, report.notes) == ((), (), ())
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    if "backbone.embed.task.weight" in before:  # the vector of the first task is added to every position
        task, name = before.pop("backbone.embed.task.weight")[0], "backbone.embed.position.weight"
        before[name] = before[name] + task
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)


def continues_with_itself(name):
    """Whether an import of what this recipe made continues with this recipe."""
    return architecture_of(recipe_of(name)).family.recipe.recipe(size="tiny").name == name


@pytest.mark.parametrize("build, name", [(build, name) for build, name in ROUND_TRIPS if continues_with_itself(name)])
def test_import_of_an_export_has_identical_recipe_parts(tmp_path, build, name):
    model = build(name, tmp_path)
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "hf")
    import_hf(tmp_path / "hf", tmp_path / "b")
    one, other = (json.loads((tmp_path / run / "recipe.json").read_text()) for run in ("a", "b"))
    if "length" not in architecture_of(model.recipe).family.config.fields:  # relative positions have no longest text
        one["system"]["backbone"]["length"] = other["system"]["backbone"]["length"]
    positions = one["system"]["backbone"].get("positions", {})
    if positions.get("start") == "neighbours":  # how weights start has no place in a config
        positions["start"] = "random"
    assert {key: (one[key], other[key]) for key in ("layout", "predict", "see", "arrange", "hide", "system")
            if one[key] != other[key]} == {}  # fmt: skip


@pytest.mark.parametrize("name, variant", REFUSED)
def test_a_refusal_names_a_value_of_the_recipe(name, variant):
    recipe = recipes.get(name, size="tiny", variant=variant)
    path, value = re.search(r"(?:got|hold) ([\w.]+)='?([\w.-]+)", refusal(recipe)).groups()
    assert str(flat(recipe)[path]).lower() == value.lower()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_type)
def test_the_recipe_of_a_family_is_exported_to_it_if_transformers_has_it(family):
    recipe = family.recipe.recipe(size="tiny")
    if family.model_type in hf.CONFIG_MAPPING:
        assert architecture_of(recipe).family is family
    else:
        assert "no Transformer-XL any more" in refusal(recipe)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_type)
def test_every_class_of_a_family_exists_in_transformers(family):
    if family.model_type in hf.CONFIG_MAPPING:
        assert [name for name in family.architectures.values() if not hasattr(hf, name)] == []
    else:
        assert [name for name in family.architectures.values() if hasattr(hf, name)] == []


def test_every_recipe_is_either_exported_or_refused():
    assert {name for name, _ in ALL} == set(recipes.names())
    assert {name for name, _ in EXPORTED} >= {"bert", "gpt2", "xlnet"}
