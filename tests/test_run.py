"""The run folder: created whole or not at all, claimed with one wording, opened with all that it holds."""

from __future__ import annotations

import json

import pytest

from tests.command import mistake, snapshot
from tests.infer.parts import model_of, recipe_of, tokenizer
from unmask import run
from unmask.errors import UserError
from unmask.infer import open_run, save_run
from unmask.train import checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_of(recipe_of("bert"), tokenizer(), tmp_path_factory.mktemp("model"))


def test_a_run_is_opened_as_it_was_saved(model, tmp_path):
    save_run(model, tmp_path / "run", report={"missing": ["predict.tokens.bias"]})
    found = run.open(tmp_path / "run")
    assert found.recipe == model.recipe
    assert found.tokenizer.checksum == model.tokenizer.checksum
    assert found.weights == tmp_path / "run" / "weights.safetensors"
    assert found.random == open_run(tmp_path / "run", device="cpu").fresh == ("predict.tokens.bias",)
    assert found.notices == ()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "import.json", "recipe.json", "tokenizer.json", "weights.safetensors"
    ]  # fmt: skip


@pytest.mark.parametrize("broken", ["write_text", "save_weights"])
def test_a_run_that_cannot_be_written_leaves_what_was_there(model, tmp_path, monkeypatch, broken):
    save_run(model, tmp_path / "run")
    before = snapshot(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, broken, full)
    with pytest.raises(OSError, match="No space"):
        save_run(model, tmp_path / "run", overwrite=True)
    assert snapshot(tmp_path) == before
    with pytest.raises(OSError, match="No space"):
        save_run(model, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_draft_of_a_run_that_was_killed_is_replaced(model, tmp_path):
    (tmp_path / ".run.draft").mkdir()
    (tmp_path / ".run.draft" / "half.txt").write_text("x")
    save_run(model, tmp_path / "run")
    assert not (tmp_path / ".run.draft").exists()
    assert not (tmp_path / "run" / "half.txt").exists()


def test_a_folder_is_claimed_with_one_wording(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    kept = "exists already: choose another --out, or pass --overwrite"
    for name, options, message in [
        ("full", {}, kept),
        ("empty", {}, kept),
        ("full", {"resume": False}, "choose another --out, resume it with --resume, or pass --overwrite"),
        ("full", {"resume": True}, "exists already and is not a run to resume"),
        ("file", {}, "is a file, but a run is a folder"),
        ("file", {"overwrite": True}, "is a file, but a run is a folder"),
        ("full", {"overwrite": True, "base": tmp_path / "empty" / ".." / "full"}, "is the run that the new one starts"),
        ("file/below", {}, "is not a folder with permission to write"),
    ]:
        with pytest.raises(UserError, match=message):
            run.claim(tmp_path / name, **{"overwrite": False} | options)
    with pytest.raises(UserError, match="files that are not a run, and --overwrite replaces only runs"):
        run.claim(tmp_path / "full", overwrite=True)
    (tmp_path / "full" / "recipe.json").write_text("{}")
    run.claim(tmp_path / "full", overwrite=True)
    run.claim(tmp_path / "empty", overwrite=False, resume=True)
    run.claim(tmp_path / "new" / "deep", overwrite=False)
    assert not (tmp_path / "new").exists()


def test_a_run_to_continue_from_must_be_there(tmp_path):
    said = mistake("pretrain", "bert", "data", "--from", tmp_path / "none", "--out", tmp_path / "run")
    assert "no run to continue from at" in said


@pytest.mark.parametrize("files", ["[]", '"mine.py"', "3"])
def test_damaged_names_of_files_are_refused(model, tmp_path, files):
    save_run(model, tmp_path / "run")
    path = tmp_path / "run" / "recipe.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": json.loads(files)}))
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(UserError, match="files must be"):
        open_run(tmp_path / "run", recipe=tmp_path / "mine.py")
