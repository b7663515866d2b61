"""The Python API: named parameters, progress and notices as on the command line."""

import inspect
import warnings

import pytest

import unmask
from tests.bad_input.made import examples
from tests.command import BERT
from unmask import pretraining
from unmask.errors import Notice
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
    assert set(below) - set(named) == {"now"}  # the clock


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
