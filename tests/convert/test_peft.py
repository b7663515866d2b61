"""LoRA in other libraries: peft opens an exported adapter and gives the same logits; a merged export computes the same."""

import json

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import from_text, opened
from tests.convert.parts import PARITY, TEXTS, look, model_of, recipe_of, score, tokenizer_for
from tests.convert.test_kinds import CHOICES, KINDS, QUESTIONS, our_choices, their_choices, theirs
from unmask import adapt as ways
from unmask.adapt import adapt
from unmask.convert import export_hf, export_peft
from unmask.convert.merge import merged_model
from unmask.errors import UserError
from unmask.infer.model import open_run, save_run
from unmask.settings import override
from unmask.tasks import Choose
from unmask.tasks.classify import Classify, Example

EXAMPLES = [Example(text, "abc"[i % 3]) for i, text in enumerate(TEXTS * 2)]
ALL = "projections=('query','key','value','out','up','down')"
HEADS = {"bert": {}, "gpt2": {}, "electra": {"pooler": True, "activation": "gelu"}}


def made(name, folder, *settings, way="lora"):
    """A model that was tuned until what was added is far from 0; its base is exported too."""
    recipe = recipe_of(name)
    base = model_of(recipe, tokenizer_for(recipe), folder / "base")
    save_run(base, folder / "base")
    task = Classify(epochs=4, examples=2, rate=5e-2, **HEADS.get(name, {}))
    for _ in adapt(base, EXAMPLES, folder / "run", task=task, tune=override(ways.get(way), settings), overwrite=True):
        pass
    export_hf(base, folder / "hf")
    return open_run(folder / "run", device="cpu")


def logits(model):
    batch, hidden = look(model, TEXTS)
    return score(model, "label", batch, hidden)


@pytest.mark.parametrize("settings", [[], ["rank=3", "alpha=5.0", ALL]], ids=["usual", "all projections"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "electra", "deberta", "modernbert", "albert", "roberta"])
def test_peft_gives_the_logits_of_an_exported_adapter(name, settings, tmp_path):
    from peft import PeftModel

    model = made(name, tmp_path, *settings)
    export_peft(model, tmp_path / "peft")
    network = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf", num_labels=3)
    if name == "gpt2":
        network.config.pad_token_id = model.tokenizer.vocabulary.pad
    before, _ = from_text(network.eval(), tmp_path / "hf", TEXTS)
    after, _ = from_text(PeftModel.from_pretrained(network, tmp_path / "peft").eval(), tmp_path / "hf", TEXTS)
    torch.testing.assert_close(after.logits, logits(model), **PARITY)
    assert (after.logits - before.logits).abs().max() > 0.02


@pytest.mark.parametrize("name", ["bert", "gpt2", "electra", "deberta", "modernbert", "albert", "roberta"])
@pytest.mark.parametrize("kind", [*KINDS, "choose"])
def test_peft_opens_every_kind_of_task_and_gives_its_scores(kind, name, tmp_path):
    from peft import PeftModel

    base = model_of(recipe_of(name), tokenizer_for(recipe_of(name)), tmp_path / "base")
    save_run(base, tmp_path / "base")
    export_hf(base, tmp_path / "hf")
    task, some, opens = KINDS.get(kind, (Choose(), QUESTIONS, hf.AutoModelForMultipleChoice))
    plain = ["mean=0.0", "deviation=1.0"] if (name, kind) == ("gpt2", "number") else []  # its head has no bias there
    task = override(task, ["epochs=4", "examples=2", "rate=5e-2", *plain])
    for _ in adapt(base, some * 2, tmp_path / "run", task=task, tune=override(ways.get("lora"), [ALL])):
        pass
    model = open_run(tmp_path / "run", device="cpu")
    if kind == "choose" and name not in CHOICES:
        with pytest.raises(UserError, match="Hugging Face has no such head for the task Choose: use the run folder"):
            export_peft(model, tmp_path / "peft")
        return
    export_peft(model, tmp_path / "peft")
    several = {} if kind in ("span", "choose") else {"num_labels": max(1, len(model.recipe.task.labels))}
    network = PeftModel.from_pretrained(opens.from_pretrained(tmp_path / "hf", **several), tmp_path / "peft").eval()
    named = {"tag": "ForTokenClassification", "span": "ForQuestionAnswering", "choose": ""}
    assert type(network).__name__ == f"PeftModel{named.get(kind, 'ForSequenceClassification')}"
    if kind == "choose":
        for question in QUESTIONS:
            mine, other = our_choices(model, question), their_choices(tmp_path / "hf", question, network)
            torch.testing.assert_close(mine - mine.mean(), other - other.mean(), **PARITY)
        return
    (head,) = model.recipe.predict
    for text in TEXTS:
        batch, hidden = look(model, [text])
        mine = score(model, head, batch, hidden)
        if kind == "number":
            mine = mine * model.recipe.task.deviation + model.recipe.task.mean
        torch.testing.assert_close(mine, theirs(network, kind, batch)[:, : mine.shape[1]], **PARITY)


@pytest.mark.parametrize("name", ["bert", "gpt2", "deberta", "xlnet"])
def test_merging_changes_no_answer_and_leaves_the_model_as_it_is(name, tmp_path):
    model = made_without_export(name, tmp_path)
    before = logits(model)
    merged = merged_model(model)
    torch.testing.assert_close(logits(merged), before, **PARITY)
    assert merged.recipe.tune is None
    assert not any(".a." in key or ".b." in key for key, _ in merged.system.named_parameters())
    assert torch.equal(logits(model), before)


def made_without_export(name, folder):
    recipe = recipe_of(name)
    base = model_of(recipe, tokenizer_for(recipe), folder / "base")
    save_run(base, folder / "base")
    tune = override(ways.get("lora"), [ALL])
    for _ in adapt(base, EXAMPLES, folder / "run", task=Classify(epochs=4, examples=2, rate=5e-2), tune=tune):
        pass
    return open_run(folder / "run", device="cpu")


def test_an_export_is_merged(tmp_path):
    model = made("bert", tmp_path)
    export_hf(model, tmp_path / "merged")
    after, _ = from_text(opened(hf.AutoModelForSequenceClassification, tmp_path / "merged"), tmp_path / "merged", TEXTS)
    torch.testing.assert_close(after.logits, logits(model), **PARITY)


def test_what_cannot_be_exported_says_why(tmp_path):
    with pytest.raises(UserError, match="adapters have an activation, so they cannot become a part of the weights"):
        export_hf(made("bert", tmp_path / "a", way="adapters"), tmp_path / "out")
    with pytest.raises(UserError, match="the head reads a mix of all layers"):
        export_hf(made("bert", tmp_path / "m", way="mix"), tmp_path / "out")
    with pytest.raises(UserError, match="--peft writes the matrices of --tune lora, got a run of --tune head"):
        export_peft(made("bert", tmp_path / "h", way="head"), tmp_path / "out")
    with pytest.raises(
        UserError, match="peft adds matrices to linear layers, and in Hugging Face's xlnet these are none"
    ):
        export_peft(made("xlnet", tmp_path / "x"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_ranks_of_one_stacked_matrix_are_joined(tmp_path):
    export_peft(made("gpt2", tmp_path, "rank=3"), tmp_path / "peft")
    config = json.loads((tmp_path / "peft" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["fan_in_fan_out"]) == (6, 32.0, True)
    export_peft(made("bert", tmp_path / "b", "rank=3"), tmp_path / "peft-b")
    config = json.loads((tmp_path / "peft-b" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (3, 16.0)
    assert {name.rpartition(".")[2] for name in config["target_modules"]} == {"query", "value"}
