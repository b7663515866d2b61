"""What exists is kept, unless --overwrite is given."""

import shutil

import pytest

from tests import command
from tests.bad_input.made import examples
from tests.command import mistake, pretrain, snapshot, works
from unmask.infer import open_run


@pytest.fixture
def verbs(corpus, tok, data, bert, adapted, tmp_path):
    """For each verb that writes, its words but for the place."""
    train = examples(tmp_path / "train.jsonl")
    works("export", bert, tmp_path / "hf")
    quick = ["--size", "tiny", "--budget", "1steps", "--device", "cpu", *command.settings(command.BERT)]
    return {
        "tokenizer": ["tokenizer", corpus, "--vocab", 150, "--out"],
        "prepare": ["prepare", corpus, "--tokenizer", tok, "--workers", 1, "--out"],
        "pretrain": ["pretrain", "bert", data, *quick, "--out"],
        "adapt": ["adapt", bert, train, "--set", "epochs=0.1", "--out"],
        "embed": ["embed", bert, train, "--out"],
        "export": ["export", bert],
        "import": ["import", tmp_path / "hf", "--out"],
    }


@pytest.mark.parametrize("verb", ["tokenizer", "prepare", "pretrain", "adapt", "embed", "export", "import"])
def test_what_exists_is_kept_without_overwrite_and_replaced_with_it(verbs, tmp_path, verb):
    place = tmp_path / ("mine.npy" if verb == "embed" else "mine")
    if verb in ("tokenizer", "embed"):
        place.write_text("mine")
    else:
        if verb == "export":  # it adds files and removes none
            place.mkdir()
        else:
            works(*verbs[verb], place)
        (place / "note.txt").write_text("mine")
    before = snapshot(place)
    said = mistake(*verbs[verb], place)
    assert "exists already" in said
    assert "--overwrite" in said
    assert snapshot(place) == before
    works(*verbs[verb], place, "--overwrite")
    assert snapshot(place) != before


@pytest.mark.parametrize("verb", ["prepare", "pretrain", "adapt", "import"])
def test_overwrite_does_not_remove_a_folder_with_other_files(verbs, tmp_path, verb):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("mine")
    assert "choose another" in mistake(*verbs[verb], place, "--overwrite")
    assert [path.name for path in place.iterdir()] == ["thesis.txt"]
    (place / "thesis.txt").unlink()
    works(*verbs[verb], place, "--overwrite")  # an empty folder is free


def test_overwrite_does_not_remove_the_run_or_the_data_that_the_new_run_reads(bert, data, tmp_path):
    place = tmp_path / "runs"
    shutil.copytree(bert, place)
    shutil.copytree(bert, place / "base")
    shutil.copytree(data, place / "data")
    for words in (("--from", place / "base", "--overwrite"), ("--overwrite",)):
        used = place / "data" if len(words) == 1 else data
        said = pretrain("bert", used, place, "--set", "optimise.rate=1e-9", *words, steps=1, call=mistake)
        assert f"is inside {place}, which would be replaced" in said
    assert (place / "base").is_dir()
    assert (place / "data").is_dir()


def test_resume_does_not_remove_a_folder_that_is_no_run(data, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    pretrain("bert", data, tmp_path / "mine", "--resume", call=mistake)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"


def test_a_run_is_not_removed_by_continuing_it_in_its_own_place(bert, data, tmp_path):
    shutil.copytree(bert, tmp_path / "run")
    before = (tmp_path / "run" / "weights.safetensors").read_bytes()
    words = ("--set", "optimise.rate=1e-9", "--from", tmp_path / "run", "--overwrite")
    ran = pretrain("bert", data, tmp_path / "run", *words, steps=1, call=command.run)
    assert ran.code in (0, 1)
    if ran.code:
        assert (tmp_path / "run" / "weights.safetensors").read_bytes() == before
    else:
        open_run(tmp_path / "run", device="cpu")


def test_an_output_whose_folder_does_not_exist_is_made_or_refused_in_one_line(bert, tmp_path):
    (tmp_path / "t.txt").write_text("A text.\n")
    ran = command.run("embed", bert, tmp_path / "t.txt", "--out", tmp_path / "new" / "v.npy")
    assert ran.code in (0, 1)
    assert (tmp_path / "new" / "v.npy").exists() == (ran.code == 0)
