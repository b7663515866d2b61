"""A pair read in both orders: the two vectors are added, by hand; and no label depends on the order."""

import json

import numpy as np
import pytest
import torch

from tests.adapt.made import base_of, loud, probabilities
from tests.command import mistake, works
from unmask.convert import export_hf
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer.model import Model, save_run
from unmask.tasks.classify import Classify

PAIRS = [
    Text("The doctor examined the report.", "No evidence."), Text("A patient.", "The river froze near London."),
    Text("The judge ignored every window.", "It rained."),
]  # fmt: skip
KIND = {"gpt": "word-bpe", "gpt2": "byte-bpe", "bert": "wordpiece"}


def adapted(name, tokenizers, folder, **task):
    base = base_of(name, tokenizers[KIND[name]], folder)
    recipe = Classify(orders="both", dropout=0.0, **task, labels=("no", "so", "yes")).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3).eval()
    loud(system.predict["label"])
    return Model(system, recipe, base.tokenizer, folder)


@pytest.mark.parametrize("name, task", [("gpt", {}), ("gpt2", {"pool": "mean"}), ("bert", {})])
def test_the_vectors_of_both_orders_are_added_before_the_output(name, task, tokenizers, tmp_path):
    model = adapted(name, tokenizers, tmp_path, **task)
    head = model.system.predict["label"]
    found = probabilities(model, PAIRS)
    for pair, row in zip(PAIRS, found, strict=True):
        total = 0
        for text in (pair, Text(pair.b, pair.a)):
            rows, _ = rows_of([text], [0], model.tokenizer, model.recipe.layout, 48)
            batch = batch_of(rows, np.array([0]))
            with torch.no_grad():
                x = model.system.look(batch).last[0][batch.real[0]]
            x = x.mean(0) if task else x[0 if name == "bert" else -1]
            total = total + (torch.tanh(head.dense(x)) if name == "bert" else x)
        expected = head.out(total).softmax(0).detach().numpy()
        np.testing.assert_allclose(row, expected, atol=1e-5)
    np.testing.assert_allclose(found, probabilities(model, [Text(p.b, p.a) for p in PAIRS]), atol=1e-5)


def test_an_example_has_two_rows_one_label_and_counts_once(tokenizers, tmp_path):
    model = adapted("gpt", tokenizers, tmp_path)
    rows, _ = rows_of(
        model.recipe.task.lay_out(model.recipe.task.given(PAIRS), labelled=False).readings,
        [2, 0, 1],
        model.tokenizer,
        model.recipe.layout,
        48,
    )
    assert (len(rows), len(rows.ids)) == (3, 6)
    batch, counts = model.system.hide(batch_of(rows, np.array([2, 0])))
    assert (batch.shape[0], len(batch.summary), batch.label.tolist(), float(counts["label"])) == (4, 4, [1, 2], 2.0)
    assert float(counts["tokens"]) == float(batch.real.sum()) - 4
    losses, _ = model.system.step(batch)
    assert float(losses["label"].count) == 2
    loss = -np.log(probabilities(model, PAIRS)[[2, 0], [1, 2]]).sum()
    assert float(losses["label"].total.detach()) == pytest.approx(loss, abs=1e-4)


def test_one_text_has_no_orders(tokenizers, tmp_path):
    model = adapted("gpt", tokenizers, tmp_path)
    with pytest.raises(UserError, match="orders=both reads two texts in both orders, but an example has only one text"):
        probabilities(model, [Text("Alone.")])


def test_transformers_reads_a_pair_in_one_order(tokenizers, tmp_path):
    model = adapted("gpt", tokenizers, tmp_path)
    with pytest.raises(UserError, match="reads a pair in one order, got orders='both'"):
        export_hf(model, tmp_path / "hf")


def test_from_the_command_line_pairs_are_learnt_scored_and_labelled_in_both_orders(tokenizers, tmp_path):
    save_run(base_of("gpt", tokenizers["word-bpe"], tmp_path / "base"), tmp_path / "base")
    rows = [
        {"text_a": "the doctor opened the case", "text_b": f"{word} delay", "label": label}
        for word, label in (("without", "same"), ("no", "other"))
    ] * 8
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = [
        "--set",
        "orders=both",
        "--set",
        "epochs=20",
        "--set",
        "examples=4",
        "--set",
        "rate=3e-3",
        "--device",
        "cpu",
    ]
    works(
        "adapt",
        tmp_path / "base",
        tmp_path / "t.jsonl",
        "--dev",
        tmp_path / "t.jsonl",
        "--out",
        tmp_path / "run",
        *words,
    )
    assert json.loads(works("evaluate", tmp_path / "run", tmp_path / "t.jsonl", "--json").out)["accuracy"] == 1.0
    pair = ("the doctor opened the case", "without delay")
    answers = [json.loads(works("predict", tmp_path / "run", *order, "--json").out) for order in (pair, pair[::-1])]
    assert answers[0]["label"] == answers[1]["label"] == "same"
    assert answers[0]["probabilities"] == pytest.approx(answers[1]["probabilities"], abs=1e-5)
    (tmp_path / "one.jsonl").write_text('{"text": "x", "label": "a"}\n{"text": "y", "label": "b"}\n')
    said = mistake("adapt", tmp_path / "base", tmp_path / "one.jsonl", "--out", tmp_path / "two", *words)
    assert 'give "text_a" and "text_b", or adapt with orders=one' in said
    assert not (tmp_path / "two").exists()
