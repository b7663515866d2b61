"""A run that is missing, damaged or asked for what it cannot do says so."""

import shutil

import pytest
import torch
from safetensors.torch import save_file

import unmask
from tests.command import mistake, works
from unmask.train import checkpoint


def test_a_run_that_does_not_exist_is_told_how_to_make_one(tmp_path):
    assert "unmask pretrain" in mistake("fill", tmp_path / "none", "The [MASK].")


@pytest.mark.parametrize("name", ["weights.safetensors", "recipe.json", "tokenizer.json"])
def test_an_unfinished_run_is_not_opened(bert, tmp_path, name):
    shutil.copytree(bert, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(ValueError, match=f"not a finished run: it has no {name}"):
        unmask.load(tmp_path / "run")


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"part": "unmask.recipe.Rec',
        "[]",
        "null",
        '{"part": "unmask.recipe.Recipe", "name": "bert"}',
        '{"part": "unmask.recipe.Recipe", "colour": 1}',
        '{"part": "unmask.recipe.Nothing"}',
        '{"part": "unmask.backbone.Transformer"}',
    ],
)
def test_a_damaged_recipe_is_named(bert, tmp_path, content):
    shutil.copytree(bert, tmp_path / "run")
    (tmp_path / "run" / "recipe.json").write_text(content)
    assert "recipe" in mistake("fill", tmp_path / "run", "The [MASK].")


def test_weights_that_are_a_pickle_are_refused_with_the_way_to_convert_them(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "run")
    tensors = checkpoint.read(bert / "weights.safetensors")
    for modern in (True, False):
        torch.save(tensors, tmp_path / "run" / "weights.safetensors", _use_new_zipfile_serialization=modern)
        said = mistake("fill", tmp_path / "run", "The [MASK].")
        assert "is a pickle" in said
        assert "safetensors.torch.save_file" in said


@pytest.mark.parametrize("keep", [0, 4, 5000])
def test_weights_cut_off_are_named(bert, tmp_path, keep):
    shutil.copytree(bert, tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    raw = weights.read_bytes()[:keep]
    weights.unlink()
    weights.write_bytes(raw)
    said = mistake("fill", tmp_path / "run", "The [MASK].")
    assert "weights.safetensors is damaged" in said


def test_weights_of_another_network_are_refused(bert, gpt2, tmp_path):
    shutil.copytree(bert, tmp_path / "run")
    (tmp_path / "run" / "weights.safetensors").unlink()
    shutil.copy(gpt2 / "weights.safetensors", tmp_path / "run")
    assert "does not fit the model" in mistake("fill", tmp_path / "run", "The [MASK].")


@pytest.mark.parametrize("size", [0x0280, 0x0580])
def test_weights_whose_header_has_a_length_like_the_begin_of_a_pickle_are_read(size, tmp_path):
    for more in range(size):
        save_file({"x": torch.ones(2)}, tmp_path / "weights.safetensors", {"more": "x" * more})
        start = (tmp_path / "weights.safetensors").read_bytes()[:8]
        if int.from_bytes(start, "little") == size:
            break
    assert start[:2] in (b"\x80\x02", b"\x80\x05")
    assert checkpoint.read(tmp_path / "weights.safetensors")["x"].tolist() == [1, 1]


def test_a_pickled_hugging_face_model_is_refused_with_the_way_to_convert_it(bert, tmp_path):
    works("export", bert, tmp_path / "hf")
    tensors = checkpoint.read(tmp_path / "hf" / "model.safetensors")
    (tmp_path / "hf" / "model.safetensors").unlink()
    torch.save(tensors, tmp_path / "hf" / "pytorch_model.bin")
    said = mistake("import", tmp_path / "hf", "--out", tmp_path / "run")
    assert "pickle" in said
    assert "convert it once: cd " in said
    assert not (tmp_path / "run").exists()


def test_each_model_is_told_what_it_can_do(bert, gpt2, adapted, tmp_path):
    assert "unmask generate" in mistake("fill", gpt2, "The [MASK].")
    assert "unmask fill" in mistake("generate", bert, "The")
    assert "unmask adapt" in mistake("predict", bert, "The text.")
    assert "predicts label" in mistake("fill", adapted, "The [MASK].")
    assert "write [MASK]" in mistake("fill", bert, "No gap.")


@pytest.mark.parametrize(
    "words,expected",
    [
        (["--temperature", "-1"], "write --greedy"),
        (["--temperature", "0"], "write --greedy"),
        (["--top-k", "0"], "1 or more"),
        (["--top-p", "15"], "(0, 1]"),
        (["--tokens", "0"], "1 or more"),
    ],
)
def test_an_impossible_way_to_draw_is_refused(gpt2, words, expected):
    assert expected in mistake("generate", gpt2, "The", *words)


def test_an_impossible_layer_pool_or_number_of_guesses_is_refused(bert, tmp_path):
    (tmp_path / "t.txt").write_text("A text.\n")
    words = ("embed", bert, tmp_path / "t.txt", "--out", tmp_path / "v.npy")
    assert "between -3 and 2" in mistake(*words, "--layer", 9)
    assert "mean or summary" in mistake(*words, "--pool", "max")
    assert "1 or more" in mistake("fill", bert, "The [MASK].", "--top", 0)
    assert not (tmp_path / "v.npy").exists()


@pytest.mark.parametrize("old, new, expected", [
    ('"layers": 2', '"layers": 2.5', "Transformer.layers must be a whole number, got 2.5"),
    ('"budget": 0.15', '"budget": "x"', "Masked.budget must be a number or a curve, got 'x'"),
    ('"tied": true', '"tied": 1', "Tokens.tied must be true or false, got 1"),
    ('"layers": 2', '"layers": 1000000000000', "must be a whole number below 2,147,483,648"),
])  # fmt: skip
def test_a_value_of_recipe_json_that_has_another_type_is_named(bert, tmp_path, old, new, expected):
    shutil.copytree(bert, tmp_path / "run")
    path = tmp_path / "run" / "recipe.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    said = mistake("fill", tmp_path / "run", "The [MASK].")
    assert str(path) in said
    assert expected in said


def test_a_recipe_that_is_not_utf_8_is_named(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "run")
    (tmp_path / "run" / "recipe.json").write_bytes((bert / "recipe.json").read_bytes() + b"\xff")
    for words in (["fill", tmp_path / "run", "The [MASK]."], ["explain", tmp_path / "run", "A text."]):
        assert "recipe.json is damaged or not a recipe: it is not UTF-8" in mistake(*words)
