"""A run that was killed, stopped or left without room goes on as if nothing had happened."""

import json
import shlex
import signal
from pathlib import Path

import pytest
import torch

from tests import command
from tests.process import Process
from unmask import recipes
from unmask.cli import options as command_options
from unmask.data import group_reader
from unmask.data.prepare import prepare
from unmask.pretraining import pretrain
from unmask.text import Corpus
from unmask.train import checkpoint
from unmask.train.log import read

STEPS = 60


def start(data: Path, out: Path, *words: str, steps: int = STEPS) -> Process:
    """`unmask pretrain` in a process of its own."""
    line = ["pretrain", "bert", str(data), "--out", str(out), "--size", "tiny", "--budget", f"{steps}steps",
            "--device", "cpu", *command.settings(command.BERT), *words]  # fmt: skip
    return Process(*line, err=out.with_name(f"{out.name}.txt"))


def steps_logged(out: Path, count: int):
    """The moment at which so many lines are in the log."""
    return lambda: (out / "log.jsonl").is_file() and (out / "log.jsonl").read_bytes().count(b"\n") >= count


def saving(out: Path, step: int):
    """The moment at which a checkpoint is being written."""
    return lambda: (out / "state" / f".{step}").exists() or (out / "state" / str(step)).exists()


def state_files(out: Path, step: int) -> dict[str, bytes]:
    names = ("weights.safetensors", "optimiser.safetensors")
    return {name: (out / "state" / str(step) / name).read_bytes() for name in names}


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny networks are quicker, and a busy machine no matter, with one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(shards) -> Path:
    return shards["wordpiece"]


@pytest.fixture
def recipe():
    return recipes.get("roberta", size="tiny", settings=["schedule.0.length=32", "schedule.*.rows=1"])


@pytest.fixture
def undivided(corpus, tokenizers, tmp_path):
    """Data of which nothing is held out."""
    for _ in prepare(Corpus([corpus]), tokenizers["byte-bpe"], tmp_path / "data", holdout=0, workers=1):
        pass
    return tmp_path / "data"


def test_a_run_killed_at_any_moment_and_resumed_ends_with_the_bytes_of_one_never_killed(data, tmp_path):
    whole = start(data, tmp_path / "whole")
    cut, killed = tmp_path / "cut", 0
    moments = [steps_logged(cut, 4), saving(cut, 10), steps_logged(cut, 33), lambda: (cut / "state" / "50").exists()]
    for moment in moments:
        process = start(data, cut, "--resume")
        killed += process.when(moment, signal.SIGKILL)
        process.end()
    code, err = start(data, cut, "--resume").end()
    assert code == 0, err
    assert whole.end()[0] == 0
    assert killed >= 3
    assert state_files(cut, STEPS) == state_files(tmp_path / "whole", STEPS)
    assert (cut / "weights.safetensors").read_bytes() == (tmp_path / "whole" / "weights.safetensors").read_bytes()
    assert [path.name for path in (cut / "state").iterdir()] == [str(STEPS)]
    assert [record["step"] for record in read(cut)] == list(range(1, STEPS + 1))
    same = [[(r["step"], r["loss"], r["rate"]) for r in read(tmp_path / name)] for name in ("cut", "whole")]
    assert same[0] == same[1]


def test_ctrl_c_saves_the_step_and_exits_with_130(data, tmp_path):
    process = start(data, tmp_path / "run", steps=300)
    assert process.when(steps_logged(tmp_path / "run", 5), signal.SIGINT)
    code, err = process.end()
    assert code == 130, err
    assert "Traceback" not in err
    last = checkpoint.newest(tmp_path / "run")
    assert last is not None
    assert f"saved at step {last:,}" in err
    assert "--resume" in err
    assert read(tmp_path / "run")[-1]["stopped"] is True


def test_the_command_told_after_ctrl_c_resumes_the_run(data, tmp_path, monkeypatch):
    out = tmp_path / "my [new] run"
    with monkeypatch.context() as patch:
        patch.setattr(command_options, "interrupt", lambda: lambda: True)
        ran = command.pretrain("bert", data, out, call=command.run)
    assert ran.code == 130
    told = ran.err.partition("go on with: unmask ")[2].strip()
    words = shlex.split(told)
    assert str(out) in words
    command.works(*words)
    assert checkpoint.newest(out) == 4


def test_a_kill_right_after_a_checkpoint_loses_no_line_of_the_log(data, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def save_and_die(*words, **options):
        save(*words, **options)
        raise Killed

    save = checkpoint.save_state
    recipe = recipes.get("bert", size="tiny", settings=command.BERT)
    options = {"budget": "15steps", "device": "cpu"}
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_state", save_and_die)
        with pytest.raises(Killed):
            list(pretrain(recipe, [data], tmp_path / "run", **options))
    assert checkpoint.newest(tmp_path / "run") == 10
    list(pretrain(recipe, [data], tmp_path / "run", **options, resume=True))
    assert [record["step"] for record in read(tmp_path / "run")] == list(range(1, 16))


def test_a_run_killed_while_it_made_its_folder_starts_again(data, tmp_path, monkeypatch):
    recipe = recipes.get("bert", size="tiny", settings=command.BERT)
    options = {"budget": "2steps", "device": "cpu"}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(pretrain(recipe, [data], tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()
    records = list(pretrain(recipe, [data], tmp_path / "run", **options, resume=True))
    assert any(record.get("done") for record in records)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_to_resume_a_run_its_folder_is_enough(data, tmp_path):
    words = ["--seed", "3", "--budget", "12steps"]
    command.pretrain("bert", data, tmp_path / "whole", *words)
    recipe = recipes.get("bert", size="tiny", settings=command.BERT)
    list(pretrain(recipe, [data], tmp_path / "cut", budget="12steps", seed=3, device="cpu", stop=lambda: True))
    command.works("pretrain", "--resume", "--out", tmp_path / "cut", "--device", "cpu")
    assert state_files(tmp_path / "cut", 12) == state_files(tmp_path / "whole", 12)


def test_where_there_is_no_run_to_resume_it_says_what_is_missing(tmp_path):
    assert "no run to resume" in command.mistake("pretrain", "--resume", "--out", tmp_path / "none")
    assert "name a recipe and data" in command.mistake("pretrain", "--out", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_resuming_a_finished_run_says_so_and_changes_nothing(data, tmp_path):
    command.pretrain("bert", data, tmp_path / "run")
    before = command.snapshot(tmp_path / "run")
    ran = command.pretrain("bert", data, tmp_path / "run", "--resume")
    assert "finished" in ran.err
    assert command.snapshot(tmp_path / "run") == before


def test_resuming_with_another_seed_recipe_or_budget_is_refused(data, tmp_path):
    command.pretrain("bert", data, tmp_path / "run")
    before = command.snapshot(tmp_path / "run")
    for words, name in (
        (["--seed", 1], "seed"),
        (["--set", "hide.budget=0.2"], "recipe"),
        (["--budget", "9steps"], "budget"),
    ):
        said = command.pretrain("bert", data, tmp_path / "run", "--resume", *words, call=command.mistake)
        assert f"another {name}" in said
    assert command.snapshot(tmp_path / "run") == before


def test_a_damaged_checkpoint_is_not_resumed(data, tmp_path):
    recipe = recipes.get("bert", size="tiny", settings=command.BERT)
    list(pretrain(recipe, [data], tmp_path / "run", budget="30steps", device="cpu", stop=lambda: True))
    (weights,) = (tmp_path / "run" / "state").glob("*/optimiser.safetensors")
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(ValueError, match=r"optimiser\.safetensors is damaged \(its checksum differs\)"):
        list(pretrain(recipe, [data], tmp_path / "run", budget="30steps", device="cpu", resume=True))


@pytest.mark.parametrize("stopped_at", [3, 60])
def test_a_resumed_run_reads_one_group_of_the_data_whatever_the_step(
    undivided, recipe, tmp_path, monkeypatch, stopped_at
):
    monkeypatch.setattr(group_reader, "GROUP_TOKENS", 1000)
    remaining = iter(range(stopped_at - 1))
    list(
        pretrain(recipe, [undivided], tmp_path / "run", budget="200steps", device="cpu",
                 stop=lambda: next(remaining, None) is None)
    )  # fmt: skip
    step = checkpoint.newest(tmp_path / "run")
    assert step == stopped_at
    state = json.loads((tmp_path / "run" / "state" / str(step) / "state.json").read_text())
    place = state["source"]["places"][0]
    calls: list[tuple[int, int]] = []
    block = group_reader.GroupReader.block

    def counted(reader, place, slot):
        calls.append((place.visit, place.block))
        return block(reader, place, slot)

    monkeypatch.setattr(group_reader.GroupReader, "block", counted)
    list(
        pretrain(recipe, [undivided], tmp_path / "run", budget="200steps", device="cpu", resume=True, stop=lambda: True)
    )
    assert calls[0] == (place["visit"], place["block"])
    assert len(calls) <= 2  # the second is made ready in the background
    assert (stopped_at < 10) == (place["block"] + place["visit"] == 0)


def test_pretraining_publishes_its_last_weights_though_earlier_ones_validated_better(data, tmp_path, monkeypatch):
    scores = iter(range(0, -100, -1))  # ever worse
    monkeypatch.setattr(
        "unmask.pretraining.validator", lambda *_: lambda: {"score": next(scores), "loss": 1.0, "spread": 1.0}
    )
    recipe = recipes.get("bert", size="tiny", settings=command.BERT)
    records = list(pretrain(recipe, [data], tmp_path / "run", budget="30steps", device="cpu"))
    assert sum("validation_score" in record for record in records) == 3
    published = (tmp_path / "run" / checkpoint.WEIGHTS).read_bytes()
    assert published == (tmp_path / "run" / "state" / "30" / checkpoint.WEIGHTS).read_bytes()
