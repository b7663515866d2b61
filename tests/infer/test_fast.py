"""Fast: weights in 8 bits give nearly the same vectors and answers; the file is made once; what cannot be fast is refused."""

import json

import numpy as np
import pytest

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer, tokenizer_for
from unmask.infer import save_run
from unmask.infer.fast import FILE
from unmask.tasks import Classify, Span, Tag


@pytest.fixture(scope="module")
def run(tokenizers, tmp_path_factory):
    """A run that was adapted with a dev set."""
    folder = tmp_path_factory.mktemp("fast")
    save_run(base_of("bert", tokenizers["wordpiece"], folder / "base"), folder / "base")
    rows = [{"text": text, "label": label} for text in SENTENCES for label in "ab"]
    (folder / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    base = unmask.load(folder / "base", device="cpu")
    base.adapt(folder / "dev.jsonl", folder / "run", dev=folder / "dev.jsonl", settings=["epochs=1"], progress=False)
    return folder / "run"


def test_vectors_and_probabilities_are_nearly_those_of_float32(run):
    told = []
    plain, fast = unmask.load(run, device="cpu"), unmask.load(run, fast=True, tell=told.append)
    texts = [*SENTENCES, "rain", " ".join(SENTENCES)]  # several lengths, and one that is cut
    vectors, others = plain.embed(texts, tell=told.append), fast.embed(texts, tell=told.append)
    cosines = (vectors * others).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(others, axis=1)
    assert cosines.min() > 0.99
    assert not np.array_equal(vectors, others)  # it does compute with other weights
    for one, other in zip(plain.predict(SENTENCES), fast.predict(SENTENCES), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.05)
    assert "of 8 dev answers are those of float32" in told[0]["text"]


def test_a_run_with_low_rank_matrices_is_fast_too(run, tmp_path):
    base, examples = unmask.load(run.parent / "base", device="cpu"), run.parent / "dev.jsonl"
    settings = ["epochs=8", "rate=1e-2"]  # so that the matrices are not zero
    base.adapt(examples, tmp_path / "lora", tune="lora", settings=settings, progress=False)
    plain, fast = unmask.load(tmp_path / "lora", device="cpu"), unmask.load(tmp_path / "lora", fast=True, tell=list)
    without = unmask.load(run.parent / "base", device="cpu").embed(SENTENCES)
    far = np.abs(fast.embed(SENTENCES) - plain.embed(SENTENCES)).max()
    assert far < np.abs(without - plain.embed(SENTENCES)).max() / 2
    np.testing.assert_array_equal(unmask.load(run.parent / "base", device="cpu").embed(SENTENCES), without)


def test_the_file_is_made_once_and_again_when_the_weights_change(run, monkeypatch):
    told = []
    unmask.load(run, fast=True, tell=told.append)
    made = (run / FILE).stat().st_mtime_ns
    unmask.load(run, fast=True, tell=told.append)
    assert (run / FILE).stat().st_mtime_ns == made
    assert told[0] == told[1]  # the agreement is kept too
    about = json.loads((run / "fast.json").read_text())
    (run / "fast.json").write_text(json.dumps(about | {"key": "of other weights"}))
    unmask.load(run, fast=True, tell=told.append)
    assert (run / FILE).stat().st_mtime_ns > made
    assert [path.name for path in run.iterdir() if path.name.startswith(".fast")] == []


def test_predict_and_embed_are_fast_from_the_command_line(run, tmp_path):
    found = works("predict", run, SENTENCES[0], "--fast")
    assert "in 8 bits: " in found.err
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES))
    works("embed", run, tmp_path / "texts.txt", "--out", tmp_path / "v.npy", "--fast", "--layer", "-1")
    assert "only the last layer" in mistake(
        "embed", run, tmp_path / "texts.txt", "--out", tmp_path / "w.npy", "--fast", "--layer", "0"
    )


@pytest.mark.parametrize("name,kind,why", [("gpt2", "gpt2", "generates text"), ("xlnet", "unigram", "ONNX|remembers")])
def test_what_cannot_be_fast_is_refused(name, kind, why, tmp_path):
    save_run(model_of(recipe_of(name), tokenizer(kind), tmp_path), tmp_path / "run")
    with pytest.raises(ValueError, match=f"cannot be used with --fast: .*({why})"):
        unmask.load(tmp_path / "run", fast=True)
    assert not (tmp_path / "run" / FILE).exists()


@pytest.mark.parametrize(
    "task", [Tag(labels=("O", "B-X"), token="first"), Span(no_answer=False), Classify(labels=("a", "b"), texts=1)]
)
def test_a_head_that_reads_a_decoder_cannot_be_fast(task, tmp_path):
    """The file holds the network that reads the text once."""
    base = model_of(recipe_of("bart"), tokenizer_for(recipe_of("bart")), tmp_path)
    save_run(model_of(task.recipe(base), base.tokenizer, tmp_path), tmp_path / "run")
    with pytest.raises(ValueError, match="cannot be used with --fast: its head reads a decoder"):
        unmask.load(tmp_path / "run", fast=True)
