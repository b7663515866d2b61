"""One of several choices: the softmax by loops, transformers' heads with the same weights, and what is refused."""

import json

import numpy as np
import pytest
import torch
import transformers as hf

import unmask
from tests.adapt.made import base_of, chances, loud
from tests.command import mistake, works
from unmask.adapt import adapt, inherit
from unmask.convert import export_hf
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer import answer
from unmask.infer.model import Model, save_run
from unmask.tasks.choose import Choose, Question, read

QUESTIONS = [
    Question("The doctor examined the report.", ("no evidence", "three valves near London"), 1),
    Question("A patient. Who slept?", ("the river", "my teacher", "a patient", "every window"), 2),
    Question("The judge ignored every window in the morning.", ("it rained", "the data", "he sold a long bridge"), 0),
]
KIND = {"gpt": "word-bpe", "gpt2": "byte-bpe", "bert": "wordpiece", "roberta": "byte-bpe"}


def chooser(name, tokenizers, folder, **task):
    base = base_of(name, tokenizers[KIND[name]], folder)
    recipe = Choose(dropout=0.0, **task).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3)
    inherit(system, base, ["choice"])
    loud(system.predict["choice"])
    return base, Model(system.eval(), recipe, base.tokenizer, folder)


def batch_for(model, questions, chosen=(0, 1, 2)):
    labels = [question.label for question in questions]
    rows, _ = rows_of([q.readings for q in questions], labels, model.tokenizer, model.recipe.layout, 48)
    return batch_of(rows, np.array(chosen))


def frames(model, question):
    """The ids of each choice after its context, and the place of the summary, written out."""
    role, tokens = model.tokenizer.role, model.tokenizer.encode
    a = tokens(question.context)
    for choice in question.choices:
        b = tokens(choice)
        if model.recipe.name == "bert":
            yield [role("cls"), *a, role("sep"), *b, role("sep")], 0
        elif model.recipe.name == "gpt":
            yield [role("start"), *a, role("delimiter"), *b, role("extract")], -1
        else:
            yield [*a, role("sep"), *b, role("sep")], -1


@pytest.mark.parametrize("name", ["gpt", "gpt2", "bert"])
def test_the_loss_is_a_softmax_over_the_choices_of_each_example_however_many(name, tokenizers, tmp_path):
    _, model = chooser(name, tokenizers, tmp_path)
    head, total, found = model.system.predict["choice"], 0.0, chances(model, QUESTIONS)
    for question, row in zip(QUESTIONS, found, strict=True):
        scores = []
        for ids, place in frames(model, question):
            rows, _ = rows_of([Text("x")], [0], model.tokenizer, model.recipe.layout, 48)
            one, length = batch_of(rows, np.array([0])), len(ids)
            second = [int(i > len(model.tokenizer.encode(question.context)) + 1) for i in range(length)]
            batch = one.replace(
                ids=torch.tensor([ids]), position=torch.arange(length)[None], example=torch.zeros(1, length, dtype=torch.long),
                segment=torch.tensor([second]),
            )  # fmt: skip
            with torch.no_grad():
                x = model.system.look(batch).last[0, place]
                x = torch.tanh(head.dense(x)) if name == "bert" else x
                scores.append(float(head.out.weight[0] @ x))
        shares = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(row, shares, atol=1e-5)
        assert question.label is not None
        total -= np.log(shares[question.label])
    prepared, counts = model.system.hide(batch_for(model, QUESTIONS))
    losses, _ = model.system.step(prepared)
    assert float(counts["choice"]) == float(losses["choice"].count) == 3
    assert float(losses["choice"].total.detach()) == pytest.approx(total, abs=1e-4)


def test_gpt_scores_choices_as_the_double_heads_of_transformers_and_keeps_its_language_loss(tokenizers, tmp_path):
    base, model = chooser("gpt", tokenizers, tmp_path)
    export_hf(base, tmp_path / "hf")
    theirs = hf.OpenAIGPTDoubleHeadsModel.from_pretrained(tmp_path / "hf", num_labels=1).eval()
    with torch.no_grad():
        theirs.multiple_choice_head.summary.weight.copy_(model.system.predict["choice"].out.weight)
    assert model.recipe.schedule[0].weights == {"tokens": 0.5}
    batch, _ = model.system.hide(batch_for(model, QUESTIONS))
    losses, _ = model.system.step(batch)
    language, tokens = 0.0, 0
    for question, row in zip(QUESTIONS, chances(model, QUESTIONS), strict=True):
        framed = [ids for ids, _ in frames(model, question)]
        longest = max(map(len, framed))
        ids = torch.tensor([[ids + [model.tokenizer.role("pad")] * (longest - len(ids)) for ids in framed]])
        ends = torch.tensor([[len(ids) - 1 for ids in framed]])
        with torch.no_grad():
            out = theirs(ids, mc_token_ids=ends, attention_mask=(torch.arange(longest) <= ends[..., None])[0].float())
        scores = out.mc_logits[0] - theirs.multiple_choice_head.summary.bias
        np.testing.assert_allclose(row, scores.softmax(0).detach().numpy(), atol=1e-4)
        for i, one in enumerate(framed):
            logs = out.logits[0, i].log_softmax(-1)
            language -= sum(float(logs[t, one[t + 1]]) for t in range(len(one) - 1))
            tokens += len(one) - 1
    assert float(losses["tokens"].count) == tokens
    assert float(losses["tokens"].total.detach()) == pytest.approx(language, rel=1e-4)


def test_bert_scores_choices_as_the_multiple_choice_head_of_transformers(tokenizers, tmp_path):
    base, model = chooser("bert", tokenizers, tmp_path)
    export_hf(base, tmp_path / "hf")
    theirs = hf.BertForMultipleChoice.from_pretrained(tmp_path / "hf").eval()
    with torch.no_grad():
        theirs.classifier.weight.copy_(model.system.predict["choice"].out.weight)
        three = [QUESTIONS[2]]
        batch = batch_for(model, three, [0])
        out = theirs(batch.ids[None], attention_mask=batch.real[None].long(), token_type_ids=batch.segment[None])
    np.testing.assert_allclose(chances(model, three)[0], out.logits[0].softmax(0).numpy(), atol=1e-5)


def test_no_example_depends_on_the_others_of_its_batch(tokenizers, tmp_path):
    _, model = chooser("gpt", tokenizers, tmp_path)
    together = chances(model, QUESTIONS)
    for question, row in zip(QUESTIONS, together, strict=True):
        np.testing.assert_allclose(chances(model, [question])[0], row, atol=1e-5)
        assert row.sum() == pytest.approx(1, abs=1e-5)
    whole = batch_for(model, QUESTIONS)
    assert whole.shape[0] == 12
    assert (~whole.real.any(1)).tolist() == [False, False, True, True, *[False] * 4, *[False] * 3, True]


def test_of_a_context_that_is_too_long_the_end_is_kept(tokenizers, tmp_path):
    _, model = chooser("gpt", tokenizers, tmp_path)
    long = "the river opened the case " * 20 + "what did the doctor measure"
    (row,) = chances(model, [Question(long, ("the data", "no evidence"))])
    (other,) = chances(model, [Question("x " + long, ("the data", "no evidence"))])
    np.testing.assert_allclose(row, other, atol=1e-6)
    (cut,) = chances(model, [Question(long.removesuffix("what did the doctor measure"), ("the data", "no evidence"))])
    assert abs(row - cut).max() > 1e-5  # far above what the two that are the same may differ by
    rows, _ = rows_of([Text(long, "the data")], [0], model.tokenizer, model.recipe.layout, 48, keep="back")
    first, second = (model.tokenizer.encode(text) for text in (long, "the data"))
    assert rows.ids[0, 1 : 46 - len(second)].tolist() == first[-(45 - len(second)) :]
    notes = answer(model, [Question(long, ("the data", "no evidence"))]).notes
    assert notes == {"texts longer than 48 tokens, cut": 2}


@pytest.mark.parametrize("name", ["gpt", "bert", "roberta"])
def test_choices_are_learnt_and_the_best_weights_are_kept(name, tokenizers, tmp_path):
    base = base_of(name, tokenizers[KIND[name]], tmp_path / "base")
    task = Choose(epochs=16, examples=4, rate=5e-3, language=0.1 if name == "gpt" else None)
    records = list(adapt(base, QUESTIONS * 8, tmp_path / "run", dev=QUESTIONS, task=task))
    assert records[-1]["done"]
    assert max(record.get("validation_accuracy", 0) for record in records) == 1.0
    model = unmask.load(tmp_path / "run", device="cpu")
    assert [found.label for found in model.predict(QUESTIONS)] == [q.choices[q.label] for q in QUESTIONS]
    assert model.predict(QUESTIONS[0])[0] == answer(model, QUESTIONS[:1]).answers[0]


def test_from_the_command_line_a_model_learns_to_choose_is_scored_and_chooses(tokenizers, tmp_path):
    save_run(base_of("gpt", tokenizers["word-bpe"], tmp_path / "base"), tmp_path / "base")
    rows = [
        {"context": "the doctor opened the case", "question": "how", "choices": ["without delay", "no"], "label": 0},
        {"text": "the judge sold the report", "choices": ["london", "near london", "rain"], "label": "near london"},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows * 8)))
    words = ["--task", "choose", "--set", "epochs=10", "--set", "examples=4", "--set", "rate=3e-3", "--device", "cpu"]
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
    scores = json.loads(works("evaluate", tmp_path / "run", tmp_path / "t.jsonl", "--json").out)
    assert scores == {"examples": 16, "accuracy": 1.0}
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps(row | {"label": None}) for row in rows))
    told = works("predict", tmp_path / "run", tmp_path / "new.jsonl", "--json").out.splitlines()
    assert [json.loads(line)["label"] for line in told] == ["without delay", "near london"]
    assert set(json.loads(told[1])["probabilities"]) == {"london", "near london", "rain"}
    assert json.loads(told[0])["text"] == "the doctor opened the case how"
    assert "accuracy" in works("evaluate", tmp_path / "run", tmp_path / "t.jsonl").out
    assert "give a .jsonl file with" in mistake("predict", tmp_path / "run", "the doctor")
    assert "unknown task 'choos': did you mean choose" in mistake(
        "adapt", tmp_path / "base", tmp_path / "t.jsonl", "--out", tmp_path / "x", "--task", "choos"
    )


@pytest.mark.parametrize("row, message", [
    ({"choices": ["a", "b"], "label": 0}, 'line 1: an example needs "context" (or "text"), "question", or both'),
    ({"context": "c", "label": 0}, 'line 1: an example needs "choices", a list of texts; got None'),
    ({"context": "c", "choices": "ab", "label": 0}, "a list of texts; got 'ab'"),
    ({"context": "c", "choices": ["a", 5], "label": 0}, "a list of texts"),
    ({"context": "c", "choices": ["a"], "label": 0}, "line 1: an example needs two choices or more, got 1"),
    ({"context": "c", "choices": ["a", "a"], "label": 0}, "two choices are the same text"),
    ({"context": "c", "choices": ["a", "b"]}, 'line 1: the example has no "label"'),
    ({"context": "c", "choices": ["a", "b"], "label": 2}, "the text of a choice or its number, 0 to 1; got 2"),
    ({"context": "c", "choices": ["a", "b"], "label": -1}, "got -1"),
    ({"context": "c", "choices": ["a", "b"], "label": True}, "got True"),
    ({"context": "c", "choices": ["a", "b"], "label": "c"}, "got 'c'"),
    ({"context": " ", "choices": ["a", "b"], "label": 0}, "not empty; got the columns ['choices', 'context', 'label']"),
    ({"context": "", "text": None, "question": "", "choices": ["a", "b"], "label": 0}, "not empty; got the columns ["),
    ({"context": "c", "question": 3, "choices": ["a", "b"], "label": 0}, 'line 1: "question" must be a text, got 3'),
    ({"context": ["c"], "question": "q", "choices": ["a", "b"], "label": 0}, "\"context\" must be a text, got ['c']"),
])  # fmt: skip
def test_a_wrong_example_is_one_clear_line(tmp_path, row, message):
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    with pytest.raises(UserError, match="t.jsonl, line 1") as caught:
        read(tmp_path / "t.jsonl")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("row, context", [
    ({"context": " c ", "question": "q?"}, "c q?"),
    ({"context": "", "question": "q?"}, "q?"),
    ({"context": None, "question": "q?"}, "q?"),
    ({"text": "", "question": "q?"}, "q?"),
    ({"question": "q?"}, "q?"),
    ({"context": "c", "question": ""}, "c"),
    ({"context": "", "text": "t", "question": "q?"}, "t q?"),
    ({"text": "t"}, "t"),
])  # fmt: skip
def test_a_context_a_question_or_both_are_read(tmp_path, row, context):
    (tmp_path / "t.jsonl").write_text(json.dumps(row | {"choices": ["a", "b"], "label": 1}))
    assert read(tmp_path / "t.jsonl") == [Question(context, ("a", "b"), 1)]


def test_wrong_settings_are_refused():
    for settings, message in (
        ({"dropout": 1.0}, "dropout"),
        ({"epochs": 0}, "epochs"),
        ({"language": -0.5}, "language"),
    ):
        with pytest.raises(UserError, match=f"{message} must be"):
            Choose(**settings)
