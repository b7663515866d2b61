"""Cached features: a head that reads vectors from disk learns as one that reads them from the network."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.adapt.made import base_of
from unmask import adapt as ways
from unmask.adapt import adapt, features
from unmask.adapt.mix import LayerMix
from unmask.batch import Hidden
from unmask.data.examples import Text, rows_of_task
from unmask.errors import UserError
from unmask.hide import Nothing, Rewrite
from unmask.infer.model import open_run, save_run
from unmask.settings import override
from unmask.tasks.choose import Choose, Question
from unmask.tasks.classify import Classify, Example
from unmask.tasks.write import Pair, Write

TEXTS = ["the doctor opened the case", "every window near London", "three valves", "no evidence", "the judge"]
EXAMPLES = [Example(Text(f"{text} {i}"), "ab"[i % 2]) for i in range(3) for text in TEXTS]
DEV = [Example(Text(text), "a") for text in TEXTS[:3]]
QUESTIONS = [Question(text, ("slept", "froze", "the river")[: 2 + i % 2], i % 2) for i, text in enumerate(TEXTS)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


def made(name, tokenizers, folder):
    """A base whose dropout is not 0: a network that does not train must compute without it."""
    kind = {"bert": "wordpiece", "gpt2": "byte-bpe", "bart": "byte-bpe", "xlnet": "unigram"}[name]
    base = base_of(name, tokenizers[kind], folder, "system.backbone.dropout=0.3")
    save_run(base, folder)
    return base


def losses(base, out, tune, examples=EXAMPLES, task=None, dev=()):
    task = task or Classify(epochs=3, examples=4, pool="mean", rate=1e-2)
    records = list(adapt(base, examples, out, task=task, tune=tune, dev=dev, overwrite=True))
    return [record["loss"] for record in records if "loss" in record], records[-1]


@pytest.mark.parametrize("name", ["bert", "gpt2", "xlnet", "bart"])
@pytest.mark.parametrize("way", ["head", "mix"])
def test_a_cached_run_has_the_losses_of_one_that_is_not(name, way, tokenizers, tmp_path):
    base = made(name, tokenizers, tmp_path / "base")
    plain, last = losses(base, tmp_path / "plain", ways.get(way), dev=DEV)
    cached, same = losses(base, tmp_path / "cached", override(ways.get(way), ["cache=true"]), dev=DEV)
    assert np.allclose(plain, cached, atol=1e-5, rtol=0)
    assert last["validation_accuracy"] == same["validation_accuracy"]
    one, other = (open_run(tmp_path / folder, device="cpu").system.predict["label"] for folder in ("plain", "cached"))
    torch.testing.assert_close(one.out.weight, other.out.weight, atol=1e-4, rtol=0)


def test_vectors_of_another_reading_are_not_reused(tokenizers, tmp_path):
    """BART's tags read its decoder; a model of an older version that read the encoder has the same weights and rows."""
    base = made("bart", tokenizers, tmp_path / "base")
    task = Classify(labels=("a", "b"), texts=1)
    rows, _ = rows_of_task(task.lay_out(EXAMPLES, labelled=False), base.tokenizer, base.recipe.layout, 16)
    for hide in (Rewrite(), Nothing()):
        model = dataclasses.replace(base, recipe=task.recipe(base).replace(hide=hide))
        features.cached_features(model, [rows], "last", "the same weights")
    assert len(list((tmp_path / "cache" / "features").iterdir())) == 2


def test_the_network_is_run_once_and_not_again_for_the_next_head(tokenizers, tmp_path, monkeypatch):
    base = made("bert", tokenizers, tmp_path / "base")
    read = []
    forward = type(base.system.backbone).forward
    monkeypatch.setattr(
        type(base.system.backbone), "forward", lambda self, batch, *rest: (read.append(len(batch.ids)), forward(self, batch, *rest))[1]
    )  # fmt: skip
    tune = override(ways.get("head"), ["cache=true"])
    losses(base, tmp_path / "one", tune, dev=DEV)
    assert sum(read) == len(EXAMPLES) + len(DEV)
    losses(base, tmp_path / "two", tune, dev=DEV, task=Classify(epochs=2, pool="concat"))
    assert sum(read) == len(EXAMPLES) + len(DEV)
    (folder,) = (tmp_path / "cache" / "features").iterdir()
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    assert vectors.shape[1:] == (1, 16)


def test_questions_with_rows_for_each_choice_are_cached_too(tokenizers, tmp_path):
    base = made("bert", tokenizers, tmp_path / "base")
    task = Choose(epochs=2, examples=2, rate=1e-2)
    plain, _ = losses(base, tmp_path / "plain", ways.get("mix"), QUESTIONS, task)
    cached, _ = losses(base, tmp_path / "cached", override(ways.get("mix"), ["cache=true"]), QUESTIONS, task)
    assert np.allclose(plain, cached, atol=1e-5, rtol=0)


def test_a_mix_is_gamma_times_the_layers_with_softmax_weights():
    random = torch.Generator().manual_seed(0)
    layers = tuple(torch.randn(2, 3, 4, generator=random) for _ in range(3))
    mix = LayerMix(3)
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(1.7)
    total = sum(np.exp([0.5, -1.0, 2.0]))
    expected = sum(1.7 * np.exp(w) / total * layer for w, layer in zip([0.5, -1.0, 2.0], layers, strict=True))
    torch.testing.assert_close(mix(Hidden(layers)).last, expected.float())


def test_what_makes_no_sense_is_refused(tokenizers, tmp_path):
    base = made("bert", tokenizers, tmp_path / "base")
    cached = override(ways.get("head"), ["cache=true"])
    with pytest.raises(UserError, match="tune.cache keeps the vectors of a pretrained network, got --fresh"):
        list(adapt(base, EXAMPLES, tmp_path / "run", task=Classify(), tune=cached, fresh=True))
    with pytest.raises(UserError, match="--tune head trains a new head .* but --task write adds no head"):
        list(adapt(base, [Pair("a", "b")], tmp_path / "run", task=Write(), tune=ways.get("head")))
    with pytest.raises(UserError, match="language=0.5 trains the network .* with --tune mix"):
        list(adapt(base, EXAMPLES, tmp_path / "run", task=Classify(language=0.5), tune=ways.get("mix")))
    assert not (tmp_path / "run").exists()


def test_vectors_that_do_not_fit_on_the_disk_are_refused(tokenizers, tmp_path, monkeypatch):
    base = made("bert", tokenizers, tmp_path / "base")
    monkeypatch.setattr(features.shutil, "disk_usage", lambda _: features.shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(UserError, match=r"need .* GB, and .* has 0.0 GB free: set tune.cache=false"):
        losses(base, tmp_path / "run", override(ways.get("mix"), ["cache=true"]))
