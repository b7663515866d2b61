"""What is written can be read by whom the umask allows: by a colleague, a server, another account."""

import os

import pytest

from tests.command import pretrain, works
from tests.convert.parts import model_of, recipe_of, tokenizer
from unmask.infer.model import save_run


@pytest.fixture(params=[0o022, 0o002, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder):
    return {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


def test_every_file_of_a_run_and_of_an_export_has_the_mode_of_the_umask(umask, tmp_path):
    save_run(model_of(recipe_of("bert"), tokenizer(), tmp_path), tmp_path / "run")
    works("export", tmp_path / "run", tmp_path / "hf")
    works("import", tmp_path / "hf", "--out", tmp_path / "again")
    found = modes(tmp_path)
    assert {"weights.safetensors", "model.safetensors", "recipe.json", "import.json"} <= found.keys()
    assert set(found.values()) == {0o666 & ~umask}, found


def test_so_has_every_file_of_a_pretraining_and_its_state(umask, shards, tmp_path):
    pretrain("bert", shards["wordpiece"], tmp_path / "run", steps=1)
    found = modes(tmp_path / "run")
    assert {"optimiser.safetensors", "state.json", "log.jsonl"} <= found.keys()
    assert set(found.values()) == {0o666 & ~umask}, found
