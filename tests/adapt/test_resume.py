"""An adaptation that is cut off goes on from its last checkpoint, and ends with the same bytes."""

import signal

import pytest

from tests.adapt.made import base_of
from tests.bad_input.made import examples
from tests.command import mistake, works
from tests.process import Process
from unmask.adapt import adapt
from unmask.adapt.lora import Lora
from unmask.adapt.many_settings import Many
from unmask.adapt.many_tasks import Labels, adapt_many
from unmask.adapt.ulmfit import Ulmfit
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.model import save_run
from unmask.tasks.classify import Classify, Example
from unmask.tasks.number import Number

WORDS = {"a": "the doctor opened the case", "b": "every window near London", "c": "three valves"}
TRAIN = [Example(Text(f"{text} {i % 3}"), label) for i in range(4) for label, text in WORDS.items()]
DEV = [Example(Text(text), label) for label, text in WORDS.items()]
TASK = Classify(epochs=4, examples=4, rate=3e-3)


@pytest.fixture
def base(tokenizers, tmp_path):
    made = base_of("bert", tokenizers["wordpiece"], tmp_path / "base", "system.backbone.dropout=0.1")
    save_run(made, made.folder)
    return made


def cut_off(records, step):
    """Read records until one of this step, and leave the training there, as a kill would."""
    for record in records:
        if record.get("step", 0) >= step:
            records.close()
            return


def told(records):
    timed = ("seconds", "left", "tokens_per_second", "per_second")
    return [{name: value for name, value in record.items() if name not in timed} for record in records]


def same(one, other):
    return (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("tune", "step"),  # an epoch has 3 steps: before the first checkpoint, in an epoch, at its end, at the end of all
    [(None, 2), (None, 7), (None, 12), (Lora(), 7), (Ulmfit(), 6)],
)
def test_a_training_that_was_cut_off_ends_with_the_same_bytes(base, tmp_path, tune, step):
    whole = list(adapt(base, TRAIN, tmp_path / "whole", task=TASK, dev=DEV, tune=tune))
    cut_off(adapt(base, TRAIN, tmp_path / "cut", task=TASK, dev=DEV, tune=tune), step)
    rest = list(adapt(base, TRAIN, tmp_path / "cut", task=TASK, dev=DEV, tune=tune, resume=True))
    assert same(tmp_path / "whole", tmp_path / "cut")
    assert not (tmp_path / "cut" / "state").exists()
    assert told(whole)[-1] == told(rest)[-1]


def test_a_training_of_several_tasks_goes_on(base, tmp_path):
    numbers = [Example(one.text, str(i / 2)) for i, one in enumerate(TRAIN)]
    for name in ("words", "numbers"):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
    tasks = [
        Labels("words", Classify(), str(tmp_path / "words.jsonl"), TRAIN, DEV),
        Labels("numbers", Number(), str(tmp_path / "numbers.jsonl"), numbers),
    ]
    many = Many(epochs=2, examples=4)
    list(adapt_many(base, tasks, tmp_path / "whole", many=many))
    cut_off(adapt_many(base, tasks, tmp_path / "cut", many=many), 8)
    list(adapt_many(base, tasks, tmp_path / "cut", many=many, resume=True))
    assert same(tmp_path / "whole", tmp_path / "cut")


def test_a_training_goes_on_only_with_the_same_settings_and_examples(base, tmp_path):
    cut_off(adapt(base, TRAIN, tmp_path / "cut", task=TASK, dev=DEV), 6)
    with pytest.raises(UserError, match=r"started with other settings \(.*rate was 0.003, got 0.002"):
        list(adapt(base, TRAIN, tmp_path / "cut", task=Classify(epochs=4, examples=4, rate=2e-3), resume=True))
    with pytest.raises(UserError, match="started with other examples"):
        list(adapt(base, [*TRAIN[1:], TRAIN[0]], tmp_path / "cut", task=TASK, dev=DEV, resume=True))
    list(adapt(base, TRAIN, tmp_path / "cut", task=TASK, dev=DEV, resume=True))
    with pytest.raises(UserError, match="exists already and is not a run to resume"):
        list(adapt(base, TRAIN, tmp_path / "cut", task=TASK, dev=DEV, resume=True))


def test_a_killed_command_goes_on(base, tmp_path):
    train = examples(tmp_path / "t.jsonl")
    words = ["adapt", base.folder, train, "--dev", train, "--set", "epochs=12"]
    works(*words, "--out", tmp_path / "whole")
    process = Process(*map(str, words), "--out", str(tmp_path / "cut"), err=tmp_path / "err")
    process.when(lambda: bool(list((tmp_path / "cut").glob("state/[0-9]*"))), signal.SIGKILL)
    process.end()
    assert "exists already" in mistake(*words, "--out", tmp_path / "cut")
    works(*words, "--out", tmp_path / "cut", "--resume")
    assert same(tmp_path / "whole", tmp_path / "cut")
    assert "--seeds" in mistake(*words, "--out", tmp_path / "more", "--resume", "--seeds", "2")
