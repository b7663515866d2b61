"""Adapting on a GPU: steps that are recorded train the same weights as steps that are not."""

import json

import pytest
import torch

import unmask
from tests.adapt.made import base_of
from tests.convert.parts import SENTENCES
from unmask import text
from unmask.adapt import epochs
from unmask.api.model import Model
from unmask.infer.model import save_run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

WORDS = ["good", "fine", "bad", "rain", "cat"]
FILES = {
    "classify": [{"text": f"{WORDS[n % 5]} {SENTENCES[n % 2][: 5 + 3 * n]}", "label": str(n % 2)} for n in range(12)],
    "number": [{"text": f"{WORDS[n % 5]} {SENTENCES[n % 2][: 5 + 3 * n]}", "label": n / 7} for n in range(12)],
    "multi": [{"text": f"{WORDS[n % 5]} the cat", "labels": ["x"] if n % 2 else ["x", "y"]} for n in range(12)],
    "tag": [{"tokens": ["the", WORDS[n % 5], "sat"], "tags": ["O", "B-X", "O"]} for n in range(12)],
    "span": [
        {"question": "who?", "context": f"the {WORDS[n % 5]} sat", "answers": [{"text": WORDS[n % 5], "start": 4}]}
        for n in range(12)
    ],
    "choose": [{"context": WORDS[n % 5], "choices": ["the cat", "a dog"], "label": n % 2} for n in range(12)],
    "rank": [{"query": WORDS[n % 5], "passage": f"the cat {n}", "label": n % 2} for n in range(12)],
    "relation": [{"text": "the cat sat", "head": [4, 7], "tail": [8, 11], "label": str(n % 2)} for n in range(12)],
    "embed": [{"anchor": WORDS[n % 5], "positive": f"the {WORDS[n % 5]} {n}"} for n in range(12)],
}
WAYS = ["full", "head", "adapters", "lora", "mix", "ulmfit"]


def trained(base, file, folder, recorded, monkeypatch, **more):
    real = epochs.training_machine
    monkeypatch.setattr(epochs, "training_machine", lambda device, **_: real(device, recorded=recorded))
    made = base.adapt(
        file, folder, settings=["epochs=3", "examples=4", "dropout=0.0"] if more.pop("dropout", True) else ["epochs=3", "examples=4"],
        progress=False, **more,
    )  # fmt: skip
    monkeypatch.undo()
    return made.system.state_dict()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    tokenizer = text.train(text.WordPiece(vocab=58), [*SENTENCES, *WORDS])
    save_run(base_of("bert", tokenizer, folder / "run"), folder / "run")
    return Model.of(unmask.load(folder / "run", device="cuda"))


def same(base, task, tmp_path, monkeypatch, **more):
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in FILES[task]))
    found = [
        trained(base, file, tmp_path / f"run{recorded}", recorded, monkeypatch, task=task, **dict(more))
        for recorded in (False, True)
    ]
    for name, tensor in found[0].items():
        assert torch.allclose(tensor.float(), found[1][name].float(), atol=2e-3), name


@pytest.mark.parametrize("task", FILES)
def test_every_kind_of_task_is_recorded(base, task, tmp_path, monkeypatch):
    same(base, task, tmp_path, monkeypatch, dropout=task in ("classify", "number", "multi"))


@pytest.mark.parametrize("tune", WAYS)
def test_every_way_of_tuning_is_recorded(base, tune, tmp_path, monkeypatch):
    same(base, "classify", tmp_path, monkeypatch, tune=tune)


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_steps_on_texts_without_labels_are_recorded(base, task, tmp_path, monkeypatch):
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"the {WORDS[n % 5]} sat {SENTENCES[n % 2][: 5 + 3 * n]}\n" for n in range(12)))
    same(base, task, tmp_path, monkeypatch, tune="cvt", unlabelled=texts, dropout=task == "classify")


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_students_of_texts_without_labels_are_recorded(base, task, tmp_path, monkeypatch):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n\n".join(f"{WORDS[n % 5]} {SENTENCES[n % 2]}" for n in range(40)))
    same(base, task, tmp_path, monkeypatch, dropout=task == "classify", tune="cvt", unlabelled=[texts])


@pytest.mark.parametrize("tune", ["head", "mix"])
def test_features_from_disk_train_the_same_head(base, tune, tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in FILES["classify"]))
    found = [
        base.adapt(
            file, tmp_path / f"run{cached}", tune=tune, progress=False,
            settings=["epochs=3", "examples=4", "dropout=0.0", f"tune.cache={cached}"],
        ).system.state_dict()
        for cached in ("false", "true")
    ]  # fmt: skip
    for name, tensor in found[0].items():
        assert torch.allclose(tensor.float(), found[1][name].float(), atol=2e-3), name
