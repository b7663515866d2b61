"""Fingerprints and commands: what is done again, what is shared, and that a shown command does what the stage does."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from unittest import mock

import pytest

import unmask
from tests.pipeline.made import FILE, FakeRunner, folder, tasks_in
from unmask import cli, plan_pipeline, run_pipeline
from unmask.pipeline.call import Call
from unmask.pipeline.fingerprint import changes
from unmask.pipeline.read_file import read_pipeline
from unmask.pipeline.runner import given
from unmask.pipeline.toml_file import TomlFile
from unmask.pipeline.work import Work, works_of

ERNIE = FILE.replace(
    'triples = "graph.tsv"', 'recipe = "ernie-thu"\ntext = "wiki/"\ngraph = "graph.tsv"\nnames = "names.tsv"'
)
MIXED = FILE.replace('text = "reviews.txt"', 'text = "reviews.txt"\ntriples = "graph.tsv"\nmix = 0.25')


def works(file: Path, without: set[str] = frozenset(), seed: int = 0) -> dict[str, Work]:
    whole = read_pipeline(TomlFile.read(file))
    return {work.stage: work for work in works_of(whole.without(without), whole, seed=seed)}


def keys(file: Path, **options) -> dict[str, str]:
    return {name: work.key for name, work in works(file, **options).items()}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_a_changed_file_changes_its_stage_and_all_stages_after_it(tmp_path):
    file = folder(tmp_path)
    before = keys(file)
    (tmp_path / "test.jsonl").write_text('{"text": "a", "label": "long"}')
    assert changed(before, keys(file)) == {"task"}
    before = keys(file)
    (tmp_path / "graph.tsv").write_text("a\tb\tc\n")
    assert changed(before, keys(file)) == {"triples", "knowledge", "domain", "task"}
    before = keys(file)
    (tmp_path / "wiki" / "b.txt").write_text("one more\n")
    assert changed(before, keys(file)) == {"tokenizer", "general", "knowledge", "domain", "task"}


def test_dates_names_and_the_order_of_stages_that_do_not_depend_on_each_other_change_nothing(tmp_path):
    file = folder(tmp_path)
    before = keys(file)
    os.utime(tmp_path / "reviews.txt", (1, 1))
    (tmp_path / "wiki" / "a.txt").rename(tmp_path / "wiki" / "z.txt")
    assert keys(file) == before


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ('size = "tiny"', 'size = "mini"', {"general", "knowledge", "domain", "task"}),
        ('size = "tiny"', 'size = "tiny"\nset = "hide.budget=0.2"', {"general", "knowledge", "domain", "task"}),
        ("lines = true", 'lines = true\nset = "hide.budget=0.2"', {"domain", "task"}),
        ('set = "epochs=1"', 'set = "epochs=2"', {"task"}),
        ('set = "epochs=1"', 'set = "epochs=1"\ntune = "lora"', {"task"}),
        ('"graph.tsv"', '"graph.tsv"\nask = "both"', {"triples", "knowledge", "domain", "task"}),
    ],
)
def test_a_changed_field_changes_its_stage_and_all_stages_after_it(tmp_path, old, new, stages):
    before = keys(folder(tmp_path))
    assert changed(before, keys(folder(tmp_path, FILE.replace(old, new)))) == stages


def test_every_seed_has_its_own_stages_and_one_tokenizer(tmp_path):
    file = folder(tmp_path)
    assert changed(keys(file), keys(file, seed=1)) == {"general", "knowledge", "domain", "task"}


def test_the_vectors_of_a_graph_are_made_once_and_again_if_its_triples_or_names_change(tmp_path):
    later = 'lines = true\nrecipe = "ernie-thu"\ngraph = "graph.tsv"\nnames = "names.tsv"'
    file = folder(tmp_path, ERNIE.replace("lines = true", later))
    found = works(file)
    assert {found[name].calls[0].options["--graph"] for name in ("knowledge", "domain")} == {found["graph"].out}
    before = keys(file)
    (tmp_path / "names.tsv").write_text("London\tthe capital\n")
    assert changed(before, keys(file)) == {"graph", "knowledge", "domain", "task"}
    before = keys(file)
    (tmp_path / "graph.tsv").write_text("a\tb\tc\n")
    assert changed(before, keys(file)) == {"graph", "knowledge", "domain", "task"}


def test_stages_that_are_equal_in_two_variants_are_shared(tmp_path):
    steps = (
        FILE.replace("share = 6", 'budget = "6steps"')
        .replace("share = 1", 'budget = "2steps"')
        .replace("share = 3", 'budget = "2steps"')
    )
    file = folder(tmp_path, steps.replace('budget = "20steps"\n', ""))
    whole, left = works(file), works(file, {"knowledge"})
    assert whole["tokenizer"] == left["tokenizer"]
    assert "triples" not in left
    assert whole["general"].budget != left["general"].budget  # the total stays the same
    untrained = works(file, {"general", "knowledge", "domain"})
    assert [call.options.get("--budget") for call in untrained["untrained"].calls] == ["1steps"]
    assert untrained["task"].calls[0].options["--fresh"]


def test_a_run_that_is_continued_gives_the_network_and_the_tokenizer(tmp_path):
    text = 'out = "out"\nrecipe = "bert"\nbudget = "5steps"\n[domain]\nfrom = "run"\ntext = "reviews.txt"\n[task]\ntrain = "train.jsonl"\n'
    file = folder(tmp_path, text)
    recipe = unmask.pipeline.chosen_recipe.recipes.get("bert", size="tiny")
    (tmp_path / "run").mkdir()
    for name, content in (
        ("weights.safetensors", "x"),
        ("tokenizer.json", "{}"),
        ("recipe.json", unmask.pipeline.work.run.to_json(recipe)),
    ):
        (tmp_path / "run" / name).write_text(content)
    found = works(file)
    assert list(found) == ["domain", "task"]
    assert found["domain"].calls[0].options["--from"] == tmp_path / "run"
    assert found["domain"].calls[0].options["--size"] is None
    before = keys(file)
    (tmp_path / "run" / "weights.safetensors").write_text("y")
    assert changed(before, keys(file)) == {"domain", "task"}


def parsed(call: Call) -> dict[str, object]:
    """What the command line makes of a shown command: the arguments of the function of the Python API."""
    with mock.patch.object(sys, "argv", shlex.split(call.command)), mock.patch.multiple(
        unmask, create=True, pretrain=mock.DEFAULT, load=mock.DEFAULT, triples=mock.DEFAULT, graph=mock.DEFAULT, prepare=mock.DEFAULT, train_tokenizer=mock.DEFAULT
    ) as api:  # fmt: skip
        try:
            cli.main()
        except (
            SystemExit,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
        ):  # the result of the mock is no result
            pass
        model = api["load"].return_value
        functions = {"pretrain": api["pretrain"], "tokenizer": api["train_tokenizer"], "triples": api["triples"],
                     "prepare": api["prepare"], "graph": api["graph"], "adapt": model.adapt, "evaluate": model.evaluate}  # fmt: skip
        made = functions[call.verb].call_args or model.evaluate_tasks.call_args
        opened = api["load"].call_args
    names = {"pretrain": ("recipe", "data", "out"), "adapt": ("train", "out"), "evaluate": ("file",)}
    found = dict(zip(names.get(call.verb, ("corpus", "out")), made.args, strict=False)) | made.kwargs
    return found | ({"run": opened.args[0], "device": opened.kwargs["device"]} if opened else {})


def words_of(call: Call, shown: dict[str, object]) -> object:
    """The words of a command that are no options, as the command line understood them."""
    if call.verb == "pretrain":
        return [shown["recipe"], *shown["data"]]
    return [shown["run"], shown.get("train") or shown["file"]] if "run" in shown else shown["corpus"]


def near(value: object, place: Path) -> object:
    """A value or a list of values as texts, with paths that begin in a place."""
    if isinstance(value, list | tuple):
        return [near(one, place) for one in value]
    return str(value).replace(f"{place}/", "")


@pytest.mark.parametrize(
    "text",
    [
        FILE,
        MIXED,
        ERNIE,
        FILE.replace('train = "train.jsonl"\ndev = "dev.jsonl"\ntest = "test.jsonl"', 'train = "tasks/"'),
        FILE.replace('set = "epochs=1"', 'tune = "cvt"\nunlabelled = "reviews.txt"'),
        FILE.replace('set = "epochs=1"', 'tune = "lora"\nseeds = 2\ntext_column = "text"\nlabel_column = "label"'),
    ],
)
def test_a_command_that_is_shown_does_what_the_stage_does(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    file = folder(tmp_path, text)
    tasks_in(tmp_path, "one", "two")
    whole = read_pipeline(TomlFile.read(file))
    for work in works_of(whole, whole, seed=1, device="cpu"):
        for call in work.calls:
            assert str(tmp_path) not in call.command  # as a user types it
            shown = parsed(call)
            assert near(words_of(call, shown), tmp_path) == near(call.words, tmp_path)
            for name, value in given(call).items():
                assert near(shown[name], tmp_path) == near(value, tmp_path), (call.command, name)


def test_changes_are_named_and_what_is_not_given_is_no_change(tmp_path):
    before = {"text": {"a.txt": "1", "b.txt": "2"}, "settings": [], "start": "x", "lines": False}
    now = {
        "text": {"a.txt": "3", "c.txt": "4"},
        "settings": ["hide.budget=0.2"],
        "start": "y",
        "names": {},
        "budget": "9m",
    }
    assert list(changes(before, now)) == [
        "a.txt has changed", "c.txt is new", "b.txt is gone", "settings was not given and is now hide.budget=0.2",
        "the stage or run that it starts from has changed", "budget was not given and is now 9m",
    ]  # fmt: skip
    assert list(changes({"text": {"a.txt": "1"}}, {"text": {"z.txt": "1"}})) == []  # it was renamed
    assert list(changes({}, {"labelled": {"a.jsonl": "1"}})) == ["a.jsonl is new"]


def test_a_mixed_stage_reads_prepared_triples_in_a_share_of_the_steps(tmp_path):
    found = works(folder(tmp_path, MIXED))
    settings = found["domain"].calls[0].options["--set"]
    assert settings[0] == 'schedule.*.turns={"main": 0.75, "triples": 0.25}'
    assert f'data=("{found["prepare"].out}",)' in settings[1]
    assert found["prepare"].calls[0].words == (found["triples"].out,)


def test_a_recipe_that_predicts_the_next_token_reads_triples_as_they_are(tmp_path):
    found = works(folder(tmp_path, FILE.replace('"bert"', '"gpt2"')))
    assert found["knowledge"].calls[0].options["--set"] == [
        'schedule.*.turns={"triples": 1}',
        "tracks.triples=Track(arrange=SourceTarget)",
    ]


def test_labelled_examples_are_tracks_with_the_names_of_their_files(tmp_path):
    text = FILE.replace('triples = "graph.tsv"', 'labelled = ["sst2.jsonl", "mnli/train.jsonl"]')
    file = folder(tmp_path, text)
    (tmp_path / "mnli").mkdir()
    for name in ("sst2.jsonl", "mnli/train.jsonl"):
        (tmp_path / name).write_text((tmp_path / "train.jsonl").read_text())
    call = works(file)["knowledge"].calls[0]
    assert call.words == ("bert", str(tmp_path / "wiki"))  # the data of the run, of which nothing is read
    assert call.options["--set"] == [
        'schedule.*.turns={"sst2": 0.5, "mnli": 0.5}',
        f'tracks.sst2=Track(arrange=Labelled(file="{tmp_path}/sst2.jsonl"))',
        f'tracks.mnli=Track(arrange=Labelled(file="{tmp_path}/mnli/train.jsonl"))',
    ]
    before = keys(file)
    (tmp_path / "mnli" / "train.jsonl").write_text('{"text": "a", "label": "b"}')
    assert changed(before, keys(file)) == {"knowledge", "domain", "task"}


def test_a_folder_of_tasks_gives_a_track_for_each(tmp_path):
    file = folder(tmp_path, FILE.replace('triples = "graph.tsv"', 'text = "wiki/"\nlabelled = "tasks/"'))
    tasks_in(tmp_path, "one", "two-b")
    settings = works(file)["knowledge"].calls[0].options["--set"]
    assert settings[0] == 'schedule.*.turns={"main": 0.666667, "one": 0.166667, "two_b": 0.166667}'
    assert (
        f'tracks.two_b=Track(arrange=Labelled(file="{tmp_path}/tasks/two-b/train.jsonl", dev="{tmp_path}/tasks/two-b/dev.jsonl"))'
        in settings
    )


def test_a_folder_of_tasks_is_adapted_and_scored_as_a_whole(tmp_path):
    lines = FILE.splitlines()
    file = folder(
        tmp_path, "\n".join([*lines[: lines.index("[task]")], "[task]", 'train = "tasks/"', 'set = "epochs=1"'])
    )
    tasks_in(tmp_path, "one", "two")
    adapt, evaluate = works(file)["task"].calls
    assert adapt.words[1] == evaluate.words[1] == tmp_path / "tasks"
    before = keys(file)
    (tmp_path / "tasks" / "two" / "task.json").write_text('{"examples": 4}')
    assert changed(before, keys(file)) == {"task"}
    before = keys(file)
    (tmp_path / "tasks" / "two" / "test.jsonl").write_text((tmp_path / "dev.jsonl").read_text())
    assert changed(before, keys(file)) == {"task"}


def test_a_plan_shows_the_commands_and_writes_nothing(tmp_path):
    file = folder(tmp_path)
    found = plan_pipeline(file, ablate=True)
    assert not (tmp_path / "out").exists()
    assert [one["variant"] for one in found if one["stage"] == "task"] == [
        "whole",
        "without general",
        "without knowledge",
        "without domain",
    ]
    assert all(one["state"] == "begins" for one in found)
    assert all(command.startswith("unmask ") for one in found for command in one["commands"])
    run_pipeline(file, progress=False, runner=FakeRunner())
    after = plan_pipeline(file)
    assert {one["state"] for one in after} == {"finished"}
