"""The Python API: named parameters, progress and notices as on the command line."""

import inspect
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import unmask
from tests.bad_input.made import examples
from tests.command import BERT
from unmask import axes, infer, pretraining, recipes
from unmask.errors import Notice, UserError
from unmask.tasks import Classify

SHORT = {"size": "tiny", "settings": [*BERT, "system.backbone.length=64"], "budget": "2steps", "device": "cpu"}


@pytest.fixture(scope="module")
def run(shards, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "bert"
    unmask.pretrain("bert", shards["wordpiece"], folder, **SHORT, progress=lambda record: None)
    return folder


def test_pretrain_names_every_option_that_pretraining_has():
    named = inspect.signature(unmask.pretrain).parameters
    assert not [name for name, one in named.items() if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    below = inspect.signature(pretraining.pretrain).parameters
    shared = (set(below) & set(named)) - {"stop"}
    assert {name: below[name].default for name in shared} == {name: named[name].default for name in shared}
    assert named["stop"].default() is below["stop"].default() is False
    assert set(below) - set(named) == {"now", "at_once"}  # the clock; the runs of a comparison that share the machine


def test_by_default_progress_is_drawn_as_on_the_command_line(shards, tmp_path, capsys):
    unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", **SHORT)
    said = capsys.readouterr()
    assert said.out == ""
    assert "parameters on cpu" in said.err
    assert "bert tiny step 2/2 loss" in said.err


def test_a_function_is_called_with_every_record_and_nothing_is_drawn(shards, tmp_path, capsys):
    records = []
    unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", **SHORT, progress=records.append)
    assert [record["step"] for record in records if "step" in record][-1] == 2
    assert "start" in [record.get("event") for record in records]
    assert capsys.readouterr() == ("", "")


def test_without_progress_notices_are_warnings_at_the_line_that_called(shards, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("The doctor slept. The patient slept.\n\nA river. The judge sold a bridge.\n")
    known = shards["wordpiece"] / "tokenizer.json"
    unmask.prepare(tmp_path / "text.txt", tmp_path / "data", tokenizer=known, holdout=0.0, progress=False)
    with pytest.warns(Notice) as caught:
        unmask.pretrain("bert", tmp_path / "data", tmp_path / "run", **SHORT | {"budget": "30steps"}, progress=False)
    assert any("reads the same text" in str(one.message) for one in caught)
    assert {one.filename for one in caught} == {__file__}
    assert capsys.readouterr() == ("", "")


def test_adapting_draws_too_and_is_silent_when_asked(run, tmp_path, capsys):
    train = examples(tmp_path / "train.jsonl")
    unmask.load(run, device="cpu").adapt(train, tmp_path / "drawn", task=Classify(epochs=1))
    assert "loss" in capsys.readouterr().err
    unmask.load(run, device="cpu").adapt(train, tmp_path / "silent", task=Classify(epochs=1), progress=False)
    assert capsys.readouterr() == ("", "")


def test_what_a_model_cuts_from_a_text_is_a_warning_each_time(run):
    model = unmask.load(run, device="cpu")
    for _ in range(2):
        with pytest.warns(Notice, match="cut") as caught:
            model.embed("The doctor slept. " * 60)
        assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.embed("The doctor slept.")


def test_methods_keep_their_names_and_parameters():
    assert unmask.Model.fill.__name__ == "fill"
    assert list(inspect.signature(unmask.Model.fill).parameters) == ["self", "sentence", "top", "tell"]


def test_what_training_a_tokenizer_could_not_read_is_a_warning(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"The doctor slept.\n\nThe patient slept.\n" * 30 + b"a \xff b\n")
    with pytest.warns(Notice) as caught:
        unmask.train_tokenizer(tmp_path / "text.txt", tmp_path / "tok.json", vocab=36, errors="replace")
    assert {one.filename for one in caught} == {__file__}


@pytest.fixture(scope="module")
def adapted(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    train = examples(folder / "train.jsonl")
    return unmask.load(run, device="cpu").adapt(
        train, folder / "run", task="classify", settings=["epochs=2"], progress=lambda record: None
    )


def test_a_model_is_what_every_layer_takes(run):
    model = unmask.load(run, device="cpu")
    assert type(model) is unmask.Model
    assert isinstance(model, infer.Model)
    assert infer.fill(model, "The [MASK] slept.").value == model.fill("The [MASK] slept.")
    assert (infer.embed(model, ["A river."]).value == model.embed("A river.")).all()


def test_a_task_is_named_or_given_and_settings_change_it(adapted):
    assert type(adapted) is unmask.Model
    assert adapted.recipe.task.epochs == 2
    assert adapted.labels == tuple(sorted(adapted.labels))
    assert adapted.history[-1]["done"] is True


def test_a_function_may_take_the_notes_of_a_result_and_nothing_is_warned_of(run):
    model, told = unmask.load(run, device="cpu"), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.embed(["The doctor slept. " * 60, "A river."], tell=told.append)
        model.embed("A river.", tell=told.append)
    assert told == [{"notes": {"texts longer than 64 tokens, cut": 1}}]


def test_threads_that_share_a_model_get_their_own_results_and_notes(run, adapted):
    base = unmask.load(run, device="cpu")
    texts = [f"The doctor opened {number} doors. " * (1 + number % 12) for number in range(32)]

    def answers(text):
        told = []
        filled = base.fill(f"[MASK] {text}", tell=told.append)
        vectors = base.embed(text, tell=told.append)
        return filled, vectors.tolist(), adapted.predict(text, tell=told.append), told

    serial = [answers(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answers, texts * 2)) == serial * 2
    cut = [bool(told) for *_, told in serial]
    assert any(cut)
    assert not all(cut)


def test_training_that_is_stopped_says_so_and_its_model_can_be_used(shards, tmp_path):
    asked = iter([False, True, True])
    model = unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", **SHORT | {"budget": "9steps"},
                            stop=lambda: next(asked), progress=lambda record: None)  # fmt: skip
    assert model.history[-1]["stopped"] is True
    assert model.history[-1]["step"] == 2
    assert model.embed("A river.").shape == (1, 128)
    again = unmask.pretrain(None, (), tmp_path / "run", resume=True, device="cpu", progress=lambda record: None)
    assert again.history[-1]["step"] == 9


def test_a_budget_in_time_runs_from_when_it_began(shards, tmp_path):
    with pytest.raises(
        UserError, match=r"starting and measuring took 6\d s of the budget of 60 s: give at least --budget 1\d\ds"
    ):
        unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", **SHORT | {"budget": "60s"},
                        began=time.monotonic() - 61, progress=lambda record: None)  # fmt: skip


def test_a_recipe_is_described_with_its_settings_and_its_price():
    small = unmask.describe("bert", size="tiny", settings=["hide.budget=0.2"])
    assert small.values["hide.budget"] == small.recipe["hide"]["budget"] == 0.2
    assert small.kept < small.parameters < unmask.describe("bert").parameters
    with pytest.raises(UserError, match="a Recipe was given"):
        unmask.describe(recipes.get("bert"), size="tiny")


def test_differences_of_two_recipes_are_values_by_name():
    found = {one.name: (one.first, one.second) for one in unmask.differences("bert", "roberta")}
    assert found["tokenizer"] == ("WordPiece", "ByteBPE")
    assert "name" not in found
    assert unmask.differences("bert", "bert") == []
    changed = recipes.get("bert", size="tiny", settings=["hide.budget=0.2"])
    assert unmask.differences("bert", changed, size="tiny") == [("hide.budget", 0.15, 0.2)]


def test_every_part_of_every_recipe_is_listed_with_its_facts():
    listed = unmask.list_parts()
    names = {entry.name for entry in listed}
    for entry in unmask.list_recipes():
        used = {type(part).__name__ for _, part in axes.parts_in(recipes.get(entry.name))}
        assert used - {"Recipe", "Stage", "Track", "Continuing", "Adapt"} <= names
    assert all(entry.about for entry in listed)
    (words,) = [entry for entry in unmask.list_parts("units") if entry.name == "Words"]
    assert (words.axis, words.needs, words.gives) == ("units", ("column:word",), ())
    (masked,) = [entry for entry in unmask.list_parts("hide") if entry.name == "Masked"]
    assert "targets:tokens" in masked.gives
    assert {entry.axis for entry in listed} >= {"tokenizer", "arrange", "hide", "see", "backbone", "attention", "task"}
    with pytest.raises(UserError, match="did you mean hide"):
        unmask.list_parts("hid")


def test_a_run_is_explained_with_its_own_tokenizer(run, shards):
    found = unmask.explain(str(run), "The doctor slept.")
    assert (found.recipe, found.size) == ("bert", "tiny")
    assert "tokenizer: the one given" in found.notes[0]
    assert unmask.measure(str(run), shards["wordpiece"]).recipe == "bert"
    with pytest.raises(UserError, match="leave --size and --variant out"):
        unmask.explain(str(run), "The doctor slept.", size="tiny")


def test_a_picture_needs_a_name_that_can_be_drawn(tmp_path):
    with pytest.raises(UserError, match="--font is for a picture"):
        unmask.explain("bert", "The doctor slept.", font=tmp_path / "font.ttf")
    unmask.explain("bert", "The doctor slept.", picture=tmp_path / "bert.png")
    assert (tmp_path / "bert.png").stat().st_size > 1000


def test_vectors_of_a_file_are_written_and_returned(run, tmp_path):
    (tmp_path / "texts.txt").write_text("A river.\n\nThe doctor slept.\n")
    model, told = unmask.load(run, device="cpu"), []
    vectors = model.embed_file(tmp_path / "texts.txt", tmp_path / "v.npy", tell=told.append)
    assert (np.load(tmp_path / "v.npy") == vectors).all()
    assert np.allclose(vectors, model.embed(["A river.", "The doctor slept."]))
    assert told == [{"notes": {"blank line left out (line 2)": 1}}]
    with pytest.raises(UserError, match="exists already"):
        model.embed_file(tmp_path / "texts.txt", tmp_path / "v.npy")


def test_examples_are_read_from_a_file_and_how_is_told(adapted, tmp_path):
    (tmp_path / "t.csv").write_text("review;stars\nA river.;3\nThe doctor slept.;4\n")
    told = []
    found = adapted.read_examples(tmp_path / "t.csv", text="review", tell=told.append)
    assert [example.row["stars"] for example in found] == ["3", "4"]
    assert [record["event"] for record in told] == ["notice"]
    assert "semicolon" in told[0]["text"]
    assert adapted.predict(found) == adapted.predict(["A river.", "The doctor slept."])


def test_listing_does_not_wait_for_torch():
    code = (
        "import sys, unmask, unmask.cli; unmask.list_recipes(); unmask.list_tasks(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_public_name_is_found_where_it_is_said_to_be():
    assert sorted(name for names in unmask._WHERE.values() for name in names) == sorted(unmask.__all__)
    for name in unmask.__all__:
        assert getattr(unmask, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        unmask.nothing  # noqa: B018
