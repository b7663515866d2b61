"""Comparisons on text: every entry reads the same text with a tokenizer of its own kind."""

import json
import os
import shlex
from functools import partial
from pathlib import Path

import pytest

import unmask
from tests.command import mistake, run, works
from tests.comparison.test_compare import NARROW, OPTIONS
from tests.conftest import documents
from unmask.comparison.request import read
from unmask.errors import UserError
from unmask.text import Tokenizer

WORDS = ["Monday", "harbour", "the new bridge"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A folder with text, and a cache of its own."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("\n\n".join(documents(60)))
    return tmp_path


def compare(recipes, home, **more):
    return unmask.compare(recipes, home / "c", data=home / "texts", **(OPTIONS | {"budget": "2steps"} | more))


def test_each_recipe_has_a_tokenizer_of_its_own_kind_and_its_command_makes_the_same_run(here, home):
    found = compare(["bert", "gpt2", "char-transformer"], home, holdout=0.05)
    assert [(run["name"], run["state"]) for run in found["runs"]] == [
        ("bert/2steps/seed0", "done"), ("gpt2/2steps/seed0", "done"), ("char-transformer/2steps/seed0", "done")
    ]  # fmt: skip
    kinds = {}
    for one in found["runs"]:
        folder, recipe = home / "c" / "runs" / one["name"], one["name"].partition("/")[0]
        kinds[recipe] = json.loads((folder / "tokenizer.json").read_text())["model"]["type"]
        words = shlex.split(one["commands"][0])
        assert words[:4] == ["unmask", "pretrain", recipe, str(home / "texts")]
        again = home / "again" / recipe
        works(*(str(again) if word == str(folder) else word for word in words[1:]))
        assert (again / "weights.safetensors").read_bytes() == (folder / "weights.safetensors").read_bytes()
    assert kinds["bert"] == "WordPiece"
    assert kinds["gpt2"] == "BPE"


def test_one_tokenizer_may_serve_all(here, home):
    unmask.train_tokenizer([home / "texts"], home / "tok.json", kind="wordpiece")
    found = compare(["bert", "gpt2"], home, tokenizer=home / "tok.json")
    tokens = [Tokenizer.load(home / "c" / "runs" / name / "2steps" / "seed0") for name in ("bert", "gpt2")]
    assert tokens[0].checksum == tokens[1].checksum == Tokenizer.load(home / "tok.json").checksum
    assert all(f"--tokenizer {home / 'tok.json'}" in run["commands"][0] for run in found["runs"])


def test_a_comparison_goes_on_and_is_measured_again_when_the_text_changes(here, home):
    compare(["gpt2"], home)
    compare(["gpt2", "bert"], home)
    assert [name for name, _ in here] == ["gpt2/2steps/seed0", "bert/2steps/seed0"]
    (home / "texts" / "b.txt").write_text("Another text about a new bridge. It is short.")
    compare(["bert+name=other+hide.budget=0.3"], home)  # entries of earlier commands read the new text too
    assert [name for name, _ in here[2:]] == ["gpt2/2steps/seed0", "bert/2steps/seed0", "other/2steps/seed0"]


def test_runs_of_a_sweep_read_the_data_of_their_entry(here, home):
    found = compare(["gpt2", "bert"], home, sweep=["optimise.rate=1e-3,2e-3"], budget="4steps", holdout=0.05)
    assert [one["tuning"]["error"] for one in found["entries"]] == ["", ""]
    assert [run["state"] for run in found["runs"]] == ["done", "done"]
    assert len(here) == 6


def test_a_lexicon_is_read_for_the_recipes_that_need_one(here, home):
    (home / "known.tsv").write_text("".join(f"{word}\tphrase\n{word}\tentity\n" for word in WORDS))
    found = compare(["ernie", "bert"], home, lexicon=home / "known.tsv")
    commands = [run["commands"][0] for run in found["runs"]]
    assert f"--lexicon {home / 'known.tsv'}" in commands[0]
    assert "--lexicon" not in commands[1]
    with pytest.raises(UserError, match="--lexicon has no effect, because no recipe of this comparison needs it"):
        unmask.compare(["bert"], home / "d", data=home / "texts", lexicon=home / "known.tsv", **OPTIONS)
    with pytest.raises(UserError, match="give it with --lexicon FILE"):
        unmask.compare(["ernie"], home / "d", data=home / "texts", **OPTIONS)
    assert not (home / "d").exists()


def test_the_command_line_says_what_is_prepared(home):
    options = [word for one in NARROW for word in ("--set", one)]
    said = run(
        "compare", "gpt2", "roberta", "--data", str(home / "texts"), "--budget", "1steps", "--size", "tiny", "--device", "cpu",
        *options, "--out", str(home / "c"),
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "training a tokenizer for gpt2" in said.err
    assert "gpt2: " in said.err
    assert "tokens, prepared in" in said.err


def test_what_has_no_effect_is_refused(home, shards):
    refused = partial(mistake, "compare", "gpt2", "--budget", "1steps", "--size", "tiny", "--out", str(home / "c"))
    said = refused("--data", str(shards["wordpiece"]), "--lines")
    assert "--lines says how text is read, but no text is given: leave --lines out" in said
    said = refused("--data", str(home / "texts"), "--sweep", "tokenizer.vocab=100,200", "--sweep-by", "task")
    assert "tokenizer.vocab has no effect in a sweep" in said
    said = refused("--data", str(home / "nothing"))
    assert "nothing" in said
    said = refused("--data", str(home / "texts"), "--data", str(shards["wordpiece"]))
    assert "give only text, or prepare the text too" in said


def test_comparisons_of_the_first_format_go_on(here, home, shards):
    unmask.compare(["gpt2"], home / "c", data=shards["wordpiece"], **OPTIONS | {"budget": "2steps"})
    file = home / "c" / "compare.json"
    values = json.loads(file.read_text())
    values["format"] = 1
    for one in values["asked"]:
        del one["prepared"]
    file.write_text(json.dumps(values))
    assert read(home / "c").asked[0].prepared is None
    unmask.compare(["gpt2", "roberta"], home / "c", data=shards["wordpiece"], **OPTIONS | {"budget": "2steps"})
    assert [name for name, _ in here] == ["gpt2/2steps/seed0", "roberta/2steps/seed0"]
    assert os.listdir(home / "c" / "runs")
