"""The next token predicted beside the label: GPT's loss against transformers' network and the paper's sum, by loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf

from tests.adapt.made import base_of, loud
from unmask import recipes
from unmask.adapt import adapt, inherit
from unmask.convert import export_hf
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.hide import Next, Nothing
from unmask.infer.model import open_run, save_run
from unmask.recipe import Adapt
from unmask.settings import override
from unmask.tasks.choose import Choose
from unmask.tasks.classify import Classify, Example
from unmask.train import Machine, Trainer

TEXTS = [
    Text("The doctor examined the report.", "No evidence."), Text("A patient slept.", "The river froze near London."),
    Text("The judge ignored every window in the morning.", "It rained."),
]  # fmt: skip
EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, ("yes", "no", "yes"), strict=True)]


@pytest.fixture
def base(tokenizers, tmp_path):
    return base_of("gpt", tokenizers["word-bpe"], tmp_path / "base")


def turned(base, task):
    recipe = replace(task, labels=("no", "yes")).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0)
    inherit(system, base, ["label"])
    loud(system.predict["label"])
    rows, _ = rows_of(TEXTS, [1, 0, 1], base.tokenizer, recipe.layout, 48)
    return recipe, system, batch_of(rows, np.arange(3))


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_the_loss_is_that_of_the_label_and_a_share_of_that_of_every_token_that_follows_another(base, tmp_path, weight):
    recipe, system, batch = turned(base, Classify(dropout=0.0, language=weight))
    trainer = Trainer(system, recipe.optimise, Machine(), 0)
    means = trainer.gradients([batch], recipe.schedule[0].weights, 1)

    export_hf(base, tmp_path / "hf")
    theirs = hf.OpenAIGPTLMHeadModel.from_pretrained(tmp_path / "hf").eval()
    role, label, language, count = base.tokenizer.role, 0.0, 0.0, 0
    for text, answer in zip(TEXTS, (1, 0, 1), strict=True):
        a, b = base.tokenizer.encode(text.a), base.tokenizer.encode(text.b)
        ids = [role("start"), *a, role("delimiter"), *b, role("extract")]
        out = theirs(torch.tensor([ids]), output_hidden_states=True)
        scores = system.predict["label"].out.weight.detach() @ out.hidden_states[-1][0, -1]
        label = label - scores.log_softmax(0)[answer] / 3
        for place in range(len(ids) - 1):
            language = language - out.logits[0, place].log_softmax(0)[ids[place + 1]]
            count += 1
    torch.testing.assert_close(means["label"], label, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(means["tokens"], language / count, atol=1e-4, rtol=1e-4)
    (label + weight * language / count).backward()
    ours = system.backbone.embed.token.weight.grad
    torch.testing.assert_close(ours, theirs.transformer.tokens_embed.weight.grad, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(
        system.backbone.blocks[0].mlp.up.weight.grad,
        theirs.transformer.h[0].mlp.c_fc.weight.grad.T,
        atol=1e-4,
        rtol=1e-3,
    )


def test_gpt_keeps_the_language_model_by_default_and_others_do_not(base, tokenizers, tmp_path):
    recipe = Classify(labels=("no", "yes")).recipe(base)
    assert recipe.schedule[0].weights == {"tokens": 0.5}
    assert (list(recipe.predict), recipe.hide) == (["label", "tokens"], Next())
    assert recipe.optimise.rate == pytest.approx(6.25e-5 * 768 / 16)
    assert (recipe.optimise.warmup, recipe.optimise.curve, recipe.optimise.decay) == (0.002, "linear", 0.01)
    plan = Classify().hyperparameters(recipes.get("gpt"))
    assert (plan.epochs, plan.examples, plan.decay, Classify().dropout) == (3.0, 32, 0.01, 0.1)
    gpt2 = base_of("gpt2", tokenizers["byte-bpe"], tmp_path / "gpt2")
    other = Classify(labels=("no", "yes")).recipe(gpt2)
    assert (list(other.predict), other.hide, other.schedule[0].weights) == (["label"], Nothing(), {})
    assert (other.optimise.rate, other.optimise.warmup) == (pytest.approx(5e-5 * 768 / 16), 0.1)
    asked = Classify(language=0.3, rate=1e-3, warmup=0.0, labels=("no", "yes")).recipe(gpt2)
    assert asked.schedule[0].weights == {"tokens": 0.3}
    assert (asked.optimise.rate, asked.optimise.warmup) == (1e-3, 0.0)


def test_a_head_for_tokens_with_weights_of_its_own_goes_over(tokenizers, tmp_path):
    base = base_of("gpt", tokenizers["word-bpe"], tmp_path / "base", "predict.tokens.tied=false")
    _, system, _ = turned(base, Classify())
    assert torch.equal(system.predict["tokens"].weight, base.system.predict["tokens"].weight)
    assert torch.equal(system.backbone.embed.token.weight, base.system.backbone.embed.token.weight)


def test_of_a_model_that_predicts_two_tokens_the_next_one_is_kept(tokenizers, tmp_path):
    base = base_of("char-transformer", tokenizers["wordpiece"], tmp_path / "base")
    recipe, system, batch = turned(base, Classify(language=0.5))
    assert set(recipe.predict) == {"label", "tokens"}
    assert recipe.hide == Next()
    assert set(system.step(system.hide(batch)[0])[0]) == {"label", "tokens"}


def test_without_its_language_model_it_can_be_adapted_on_and_with_it_too(base, tmp_path):
    save_run(base, tmp_path / "base")
    for language, kept in ((0.0, 0.0), (None, 0.5)):
        out = tmp_path / f"run{language}"
        task = Classify(epochs=1, examples=2, language=language)
        assert list(adapt(base, EXAMPLES, out, task=task))[-1]["done"]
        again = Classify(labels=("no", "yes")).recipe(open_run(out, device="cpu"))
        assert again.schedule[0].weights == ({"tokens": kept} if kept else {})


def test_a_model_that_predicts_no_next_token_cannot_keep_it(tokenizers, tmp_path):
    bert = base_of("bert", tokenizers["wordpiece"], tmp_path / "bert")
    with pytest.raises(
        UserError, match="language=0.5 needs a model that predicts the next token, but .* does not predict it"
    ):
        Classify(language=0.5, labels=("no", "yes")).recipe(bert)
    with pytest.raises(UserError, match="language must be 0 or more, or a curve, got -1"):
        Classify(language=-1.0)
    with pytest.raises(UserError, match="adapt.language must be 0 or more, got -1"):
        Adapt(language=-1.0)


def test_an_adapted_gpt_is_exported_as_a_classifier_and_says_what_it_leaves_out(base, tmp_path):
    recipe, system, batch = turned(base, Classify())
    model = type(base)(system.eval(), recipe, base.tokenizer, tmp_path / "run")
    made = export_hf(model, tmp_path / "hf")
    assert (made.architecture, made.left_out) == ("OpenAIGPTForSequenceClassification", ("tokens",))
    theirs = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    with torch.no_grad():
        ours = system.predict["label"].decode(system.look(batch), batch)
        torch.testing.assert_close(ours, theirs(batch.ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("task", [Classify, Choose])
def test_the_weight_of_language_is_a_number_or_a_curve(task):
    assert override(task(), ["language=0.3"]).language == 0.3
    curve = override(task(), ["language=Linear(first=0.5, last=0.1)"]).language
    assert (curve.at(0.0), curve.at(1.0)) == (0.5, pytest.approx(0.1))
    with pytest.raises(UserError, match="unknown part for language, which takes a number or a part, .*Linear"):
        override(task(), ["language=much"])


def test_the_weight_is_the_one_that_training_uses(base, tmp_path):
    tables = []
    for number, weight in enumerate((0.0, 1e-30, 1.0)):
        task = Classify(epochs=2, examples=3, dropout=0.0, language=weight)
        for _ in adapt(base, EXAMPLES, tmp_path / str(number), task=task):
            pass
        tables.append(open_run(tmp_path / str(number), device="cpu").system.backbone.embed.token.weight.detach())
    torch.testing.assert_close(tables[0], tables[1])
    assert (tables[0] - tables[2]).abs().max() > 1e-4
