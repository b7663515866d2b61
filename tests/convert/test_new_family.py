"""A new architecture is one new file: with the file, its models go in and out; without it, they are refused."""

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import unmask.convert
from tests.convert.parts import model_of, recipe_of, tokenizer_for, weights
from unmask.axes import Part
from unmask.backbone import Transformer
from unmask.convert import architecture_of, export_hf, import_hf
from unmask.convert.exported_values import FATES
from unmask.convert.families import families
from unmask.errors import UserError
from unmask.infer.model import open_run, save_run

FOLDER = Path(__file__).parent / "new_family"


@pytest.fixture
def one_more_file(monkeypatch):
    """The package with the file in it."""
    monkeypatch.setattr(unmask.convert, "__path__", [*unmask.convert.__path__, str(FOLDER)])
    families.cache_clear()
    yield families()["prenorm"]
    families.cache_clear()


def encoder(*settings):
    return recipe_of("roberta", "system.backbone.norm=pre", *settings)


def model_before(folder):
    return model_of(encoder(), tokenizer_for(encoder()), folder)


def test_without_the_file_it_is_refused(tmp_path):
    with pytest.raises(UserError, match="Transformer with gated=False and norm='pre' and see=Everything"):
        export_hf(model_before(tmp_path), tmp_path / "hf")


def test_with_the_file_its_models_go_out_and_in_again(tmp_path, one_more_file):
    model = model_before(tmp_path)
    save_run(model, tmp_path / "a")
    assert export_hf(model, tmp_path / "hf").architecture == "PrenormForMaskedLM"
    report = import_hf(tmp_path / "hf", tmp_path / "b")
    assert (report.architecture, report.missing, report.left_over) == ("PrenormForMaskedLM", (), ())
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert open_run(tmp_path / "b", device="cpu").recipe.system.backbone.norm == "pre"


def test_a_family_may_store_tensors_in_its_own_way(tmp_path, one_more_file):
    model = model_before(tmp_path)
    export_hf(model, tmp_path / "hf")
    stored = load_file(tmp_path / "hf" / "model.safetensors")
    joined = stored["prenorm.encoder.layer.0.attention.in_proj.weight"]
    query, key, _ = model.system.backbone.blocks[0].attention.qkv.weight.detach().chunk(3)
    assert torch.equal(joined[:16], torch.cat((query[:8], key[:8])))  # of the first head, 8 wide
    assert not [name for name in stored if "self.query.weight" in name]


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_other_recipes_keep_their_architecture(one_more_file, name):
    assert architecture_of(recipe_of(name)).family.model_type == name


def test_what_all_families_check_is_checked_of_the_new_one_too(one_more_file):
    with pytest.raises(UserError, match="prenorm has no sinusoidal positions.*it is prenorm because of"):
        architecture_of(encoder("system.backbone.positions=Sinusoidal"))


@dataclasses.dataclass(frozen=True)
class Gated(Transformer):
    """A part that only the new family knows."""

    gate: float = 0.0


def gated(gate):
    recipe = encoder()
    values = {field.name: getattr(recipe.system.backbone, field.name) for field in dataclasses.fields(Transformer)}
    return recipe.replace(system=dataclasses.replace(recipe.system, backbone=Gated(**values, gate=gate)))


def test_a_part_of_one_family_is_declared_in_its_file_and_its_values_are_refused_by_name(one_more_file, monkeypatch):
    with pytest.raises(UserError, match="does not know what system.backbone=Gated is"):
        architecture_of(gated(0.0))
    knows = dataclasses.replace(one_more_file, network=Gated, values={Gated: {**FATES[Transformer], "gate": "checked"}})
    monkeypatch.setitem(families(), "prenorm", knows)
    assert architecture_of(gated(0.0)).name == "PrenormForMaskedLM"
    with pytest.raises(UserError, match="no gate, got system.backbone.gate=0.5"):
        architecture_of(gated(0.5))


@dataclasses.dataclass(frozen=True)
class Odd(Part):
    """A part inside of a network."""

    size: int = 3


@dataclasses.dataclass(frozen=True)
class WithOdd(Transformer):
    """A network with a part in one of its fields."""

    odd: Odd | None = None


def test_a_part_inside_a_network_chooses_the_family_that_knows_it(one_more_file, monkeypatch):
    """The network is the same class for several families; one of them knows the part inside."""
    values = {WithOdd: {**FATES[Transformer], "odd": "checked"}}
    for name in ("roberta", "bert"):
        monkeypatch.setitem(families(), name, dataclasses.replace(families()[name], network=WithOdd, values=values))
    plain = recipe_of("roberta")
    fields = {field.name: getattr(plain.system.backbone, field.name) for field in dataclasses.fields(Transformer)}

    def recipe(odd):
        return plain.replace(system=dataclasses.replace(plain.system, backbone=WithOdd(**fields, odd=odd)))

    assert architecture_of(recipe(None)).family.model_type == "roberta"
    with pytest.raises(UserError, match="does not know what system.backbone.odd=Odd is"):
        architecture_of(recipe(Odd()))
    knows = dataclasses.replace(
        families()["roberta"],
        model_type="odd",
        values=values | {Odd: {"size": "checked"}},
        claims=lambda *_: "an odd part",
    )
    monkeypatch.setitem(families(), "odd", knows)
    assert architecture_of(recipe(Odd())).family.model_type == "odd"
    monkeypatch.delitem(families(), "odd")
    known = dataclasses.replace(one_more_file, values={Odd: {"size": "checked"}})
    monkeypatch.setitem(families(), "prenorm", known)
    with pytest.raises(UserError, match=r"bert, roberta cannot hold system.backbone.odd=Odd\(size=3\)"):
        architecture_of(recipe(Odd()))
