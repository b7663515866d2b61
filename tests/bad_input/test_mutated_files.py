"""Files that were damaged at random: every verb works, or ends with one line that says what is wrong."""

import os
import shutil
import traceback

import pytest

from tests.bad_input.mutate import mutations
from tests.command import BERT, run, settings, works
from unmask.explanation import statistics

SHORT = settings([*BERT, "system.backbone.length=64"])


@pytest.fixture(scope="module")
def place(bert, data, tmp_path_factory):
    """A run, an exported folder, prepared data, and a run that was cut off, to be damaged one at a time."""
    folder = tmp_path_factory.mktemp("mutated")
    shutil.copytree(bert, folder / "run")
    shutil.copytree(data, folder / "data")
    works("export", bert, folder / "hf")
    works("import", folder / "hf", "--out", folder / "imported")
    pretrain = [
        "pretrain", "bert", str(folder / "data"), "--out", str(folder / "begun"), "--size", "tiny", "--budget", "2steps",
        "--device", "cpu", *SHORT,
    ]  # fmt: skip
    works(*pretrain)
    return folder, pretrain


def assert_every_mutant_ends_with_an_error_line(file, words, count, clean=None):
    raw, bad = file.read_bytes(), []
    for what, mutant in mutations(raw, count):
        file.write_bytes(mutant)
        try:
            ran = run(*words)
            lines = [line for line in ran.err.splitlines() if line.startswith("error: ")]
            if ran.code not in (0, 1) or (ran.code == 1 and len(lines) != 1):
                bad.append(f"{what}: exit {ran.code}, {ran.err[-300:]}")
        except BaseException as error:  # a panic of the tokenizers library is no Exception
            where = traceback.extract_tb(error.__traceback__)[-1]
            bad.append(f"{what}: {type(error).__name__} {error} at {os.path.basename(where.filename)}:{where.lineno}")
        finally:
            if clean is not None:
                shutil.rmtree(clean, ignore_errors=True)
    file.write_bytes(raw)
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("name, count", [("recipe.json", 120), ("tokenizer.json", 40)])
def test_a_damaged_run(place, name, count):
    folder, _ = place
    assert_every_mutant_ends_with_an_error_line(folder / "run" / name, ["fill", folder / "run", "The [MASK]."], count)


def test_a_damaged_report_of_an_import(place):
    folder, _ = place
    words = ["fill", folder / "imported", "The [MASK]."]
    assert_every_mutant_ends_with_an_error_line(folder / "imported" / "import.json", words, 20)


@pytest.mark.parametrize("name, count", [("config.json", 80), ("tokenizer.json", 30), ("tokenizer_config.json", 20)])
def test_a_damaged_hugging_face_folder(place, name, count):
    folder, _ = place
    words = ["import", folder / "hf", "--out", folder / "made"]
    assert_every_mutant_ends_with_an_error_line(folder / "hf" / name, words, count, clean=folder / "made")


def test_a_damaged_tokenizer_file(place, tmp_path):
    folder, _ = place
    (tmp_path / "text.txt").write_text("The doctor examined the patient.\n\nThe river.\n")
    words = [
        "prepare",
        tmp_path / "text.txt",
        "--tokenizer",
        folder / "run" / "tokenizer.json",
        "--out",
        folder / "made",
    ]
    file = folder / "run" / "tokenizer.json"
    assert_every_mutant_ends_with_an_error_line(file, [*words, "--workers", 1], 20, clean=folder / "made")


def test_a_damaged_manifest(place, monkeypatch):
    monkeypatch.setitem(statistics.measure.__kwdefaults__, "tokens", 2_000)
    folder, _ = place
    words = ["explain", "bert", "--size", "tiny", "--statistics", folder / "data"]
    assert_every_mutant_ends_with_an_error_line(folder / "data" / "manifest.json", words, 40)


def test_a_damaged_plan_of_a_run_that_is_resumed(place):
    folder, pretrain = place
    assert_every_mutant_ends_with_an_error_line(folder / "begun" / "run.json", [*pretrain, "--resume"], 40)
