"""How a model is adapted when the user says nothing: the numbers of each paper, and rates that fall layer by layer."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf

from tests.adapt.made import base_of, loud, probabilities
from tests.command import mistake, works
from unmask import recipes
from unmask.convert import export_hf, import_hf
from unmask.data.examples import Laid, Text
from unmask.errors import UserError
from unmask.infer.model import Model, open_run, save_run
from unmask.infer.passes import laid_out, passes
from unmask.recipe import Adapt
from unmask.tasks import Choose, Classify
from unmask.train import LAMB, Adagrad, AdamW, Momentum, Plan

TEXTS = [Text("The doctor opened the case."), Text("A river."), Text("My teacher ignored every window near London.")]


def classifier(base: Model, task: Classify, classes: int = 3) -> Model:
    recipe = replace(task, labels=tuple(f"class {i}" for i in range(classes))).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3)
    system.backbone.load_state_dict(base.system.backbone.state_dict())
    loud(system.predict["label"])
    torch.nn.init.normal_(system.predict["label"].out.bias)
    return Model(system.eval(), recipe, base.tokenizer, base.folder)


@pytest.mark.parametrize(
    "name,size,expected",
    [
        ("bert", "base", (5e-5, 0.1, 3.0, 0.01, 1.0)),
        ("roberta", "base", (2e-5, 0.06, 10.0, 0.1, 1.0)),
        ("electra", "small", (3e-4, 0.1, 3.0, 0.0, 0.8)),
        ("electra", "base", (1e-4, 0.1, 3.0, 0.0, 0.8)),
        ("electra", "large", (5e-5, 0.1, 3.0, 0.0, 0.9)),
        ("gpt", "base", (6.25e-5, 0.002, 3.0, 0.01, 1.0)),
    ],
)
def test_what_a_task_leaves_open_is_as_the_paper_has_it(name, size, expected):
    plan = Classify().hyperparameters(recipes.get(name, size=size))
    assert (plan.rate, plan.warmup, plan.epochs, plan.decay, plan.layer_decay) == pytest.approx(expected)


def test_what_a_task_says_comes_before_the_recipe():
    task = Choose(epochs=2, rate=1e-3, warmup=0.0, decay=0.0, layer_decay=0.5, length=16)
    plan = task.hyperparameters(recipes.get("roberta"))
    assert (plan.epochs, plan.rate, plan.warmup, plan.decay, plan.layer_decay, plan.length) == (2, 1e-3, 0, 0, 0.5, 16)


@pytest.mark.parametrize("name", ["electra", "gpt2", "albert"])
def test_the_rate_of_every_parameter_is_that_of_electras_code(name, tokenizers, tmp_path):
    """By hand: embeddings at depth 0, layer l of L at l, the head at L + 2, and rate * decay^(L + 2 - depth)."""
    kind = {"electra": "wordpiece", "gpt2": "byte-bpe", "albert": "unigram"}[name]
    base = base_of(
        name,
        tokenizers[kind],
        tmp_path,
        *(["system.generator.heads=1", "system.generator.width=8"] * (name == "electra")),
    )
    recipe = Classify(rate=1e-3, layer_decay=0.8, warmup=0.0, language=0, labels=("a", "b")).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0)
    optimiser = recipe.optimise.build(system)
    step, steps = 3, 10
    whole = recipe.optimise.set(optimiser, Plan(steps).moment(step))
    assert whole == pytest.approx(1e-3 * (1 - 2 / 10))
    rates = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    layers, seen = 2, set()
    for name_, parameter in system.named_parameters():
        if name_.startswith("predict."):
            depth = layers + 2
        elif name_.startswith("backbone.blocks."):
            depth = layers if name == "albert" else 1 + int(name_.split(".")[2])
        elif name_.startswith("backbone.final_norm"):
            depth = layers
        else:
            assert name_.startswith(("backbone.embed.", "backbone.project."))
            depth = 0
        seen.add(depth)
        assert rates[id(parameter)] == pytest.approx(whole * 0.8 ** (layers + 2 - depth)), name_
    assert {0, layers, layers + 2} <= seen
    decays = {id(p): group["weight_decay"] for group in optimiser.param_groups for p in group["params"]}
    assert all((decays[id(p)] > 0) == (p.dim() > 1 and recipe.optimise.decay > 0) for p in system.parameters())


@pytest.mark.parametrize("optimise", [AdamW(), AdamW(correct=False), LAMB(), Momentum(), Adagrad()])
def test_without_layer_decay_all_parameters_have_one_rate(optimise):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    optimiser = optimise.build(model)
    rate = optimise.set(optimiser, Plan(1).moment(1))
    rates = {group["lr"] for group in optimiser.param_groups}
    assert len(rates) == 1
    assert len(optimiser.param_groups) == 2
    assert optimise == AdamW(correct=False) or rates == {rate}


@pytest.mark.parametrize(
    "make", [lambda v: Adapt(layer_decay=v), lambda v: Classify(layer_decay=v), lambda v: AdamW(layer_decay=v)]
)
@pytest.mark.parametrize("value", [0.0, 1.5, -1.0])
def test_an_impossible_layer_decay_is_refused(make, value):
    with pytest.raises(UserError, match=r"layer_decay must be in \(0, 1\]"):
        make(value)


def electra(tokenizers, folder):
    return base_of("electra", tokenizers["wordpiece"], folder, "system.generator.heads=1", "system.generator.width=8")


def test_electra_reads_a_label_off_the_first_token_by_one_linear_layer(tokenizers, tmp_path):
    model = classifier(electra(tokenizers, tmp_path), Classify(dropout=0.0))
    head = model.system.predict["label"]
    assert head.dense is None
    for text, row in zip(TEXTS, probabilities(model, TEXTS), strict=True):
        ids = [model.tokenizer.role("cls"), *model.tokenizer.encode(text.a), model.tokenizer.role("sep")]
        ((_, _, hidden),) = passes(model, laid_out(model, Laid([text]))[0])
        x = hidden.last[0, 0]
        assert hidden.last.shape[1] >= len(ids)
        np.testing.assert_allclose(row, (head.out.weight @ x + head.out.bias).softmax(0).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 8])
def test_a_linear_classifier_of_electra_is_the_same_in_transformers_and_back(classes, tokenizers, tmp_path):
    model = classifier(electra(tokenizers, tmp_path), Classify(), classes)
    export_hf(model, tmp_path / "hf")
    theirs = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    encoded = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")([t.a for t in TEXTS], padding=True, return_tensors="pt")
    with torch.no_grad():
        np.testing.assert_allclose(theirs(**encoded).logits.softmax(1).numpy(), probabilities(model, TEXTS), atol=1e-5)
    import_hf(tmp_path / "hf", tmp_path / "back")
    back = open_run(tmp_path / "back", device="cpu")
    np.testing.assert_allclose(probabilities(back, TEXTS), probabilities(model, TEXTS), atol=1e-5)


def test_with_more_classes_than_transformers_layer_has_room_for_the_export_says_what_to_set(tokenizers, tmp_path):
    base = electra(tokenizers, tmp_path)
    with pytest.raises(UserError, match="adapt again with --set pooler=true"):
        export_hf(classifier(base, Classify(), 9), tmp_path / "hf")
    export_hf(classifier(base, Classify(pooler=True), 9), tmp_path / "hf")


def test_bert_without_its_pooler_is_not_exported(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path)
    with pytest.raises(UserError, match="adapt again with --set pooler=true"):
        export_hf(classifier(base, Classify(pooler=False)), tmp_path / "hf")


@pytest.mark.parametrize(
    "name,task,expected",
    [
        ("electra", {}, (False, "tanh")),
        ("electra", {"pooler": True}, (True, "gelu")),
        ("electra", {"pooler": True, "activation": "tanh"}, (True, "tanh")),
        ("bert", {}, (True, "tanh")),
        ("bert", {"pooler": False}, (False, "tanh")),
        ("gpt2", {}, (False, "tanh")),
        ("gpt2", {"pooler": True}, (True, "tanh")),
    ],
)
def test_the_dense_layer_before_the_output_is_as_the_task_says_or_the_recipe(
    name, task, expected, tokenizers, tmp_path
):
    base = (
        electra(tokenizers, tmp_path)
        if name == "electra"
        else base_of(name, tokenizers["byte-bpe" if name == "gpt2" else "wordpiece"], tmp_path)
    )
    label = Classify(**task, labels=("a", "b")).recipe(base).predict["label"]
    choice = Choose(**task).recipe(base).predict["choice"]
    assert (label.pooler, label.activation) == (choice.pooler, choice.activation) == expected


def test_from_the_command_line_rates_fall_layer_by_layer(tokenizers, tmp_path):
    save_run(base_of("bert", tokenizers["wordpiece"], tmp_path / "base"), tmp_path / "base")
    (tmp_path / "t.csv").write_text("text,label\n" + "a doctor,x\na river,y\n" * 4)
    words = (
        "adapt",
        tmp_path / "base",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "run",
        "--device",
        "cpu",
        "--set",
        "epochs=1",
    )
    works(*words, "--set", "layer_decay=0.9", "--set", "decay=0.05", "--set", "pooler=false")
    optimise = open_run(tmp_path / "run", device="cpu").recipe.optimise
    assert (optimise.layer_decay, optimise.decay) == (0.9, 0.05)
    assert "layer_decay must be in (0, 1], got 2" in mistake(*words, "--overwrite", "--set", "layer_decay=2")


@pytest.mark.parametrize("examples, epochs", [(10, 20.0), (640, 15.0), (1_000, 10.0), (3_200, 3.0), (100_000, 3.0)])
def test_few_examples_are_read_more_often_unless_the_user_says_how_often(examples, epochs):
    recipe = recipes.get("bert")
    assert Classify().sized(examples, recipe).epochs == epochs
    assert Classify(epochs=1.5).sized(examples, recipe).epochs == 1.5
