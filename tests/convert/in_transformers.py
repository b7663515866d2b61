"""Exported models in transformers: which recipes have an architecture there, and how both sides are compared."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
import transformers as hf

from tests.convert.parts import PAIRS, PARITY, TEXTS, look, model_of, recipe_of, score, tokenizer_for
from unmask import recipes
from unmask.convert import architecture_of
from unmask.data import FromTask
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.hide import Nothing, Rewrite
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.recipe import Recipe
from unmask.system import Single
from unmask.tasks import Classify

AUTO = {  # how the name of a class ends, and what opens it
    "ForPreTraining": hf.AutoModelForPreTraining,
    "ForMaskedLM": hf.AutoModelForMaskedLM,
    "ForConditionalGeneration": hf.AutoModelForSeq2SeqLM,
    "LMHeadModel": hf.AutoModelForCausalLM,
    "ForSequenceClassification": hf.AutoModelForSequenceClassification,
    "Model": hf.AutoModel,
}
HEADS = {"tokens": ("prediction_logits", "logits"), "sentence": ("seq_relationship_logits", "sop_logits", "logits")}


def refusal(recipe: Recipe) -> str | None:
    """Why there is no architecture for a recipe; None if there is one."""
    try:
        architecture_of(recipe)
    except UserError as error:
        return str(error)
    return None


def variants(name: str) -> list[str]:
    return list(importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}").VARIANTS)


ALL = [(name, variant) for name in recipes.names() for variant in variants(name)]
EXPORTED = [(n, v) for n, v in ALL if refusal(recipes.get(n, size="tiny", variant=v)) is None]
REFUSED = [case for case in ALL if case not in EXPORTED]
NAMES = [name for name, variant in EXPORTED if variant == "paper"]


def classifier(name: str, folder: Path, tokens: Any = None, **changes: Any) -> Model:
    """A model with a label, its head as the architecture of the recipe has it."""
    recipe = classifier_recipe(name, **changes)
    return model_of(recipe, tokens or tokenizer_for(recipe), folder)


def classifier_recipe(name: str, **changes: Any) -> Recipe:
    recipe = recipe_of(name)
    family = architecture_of(recipe).family
    pooler = family.pooler
    norm = {"pooler_bias": False, "pooler_norm": recipe.system.backbone.epsilon} if family.pooler_norm else {}
    head = {"classes": 3, "pooler": pooler is not None, "activation": pooler or "tanh",
            "bias": pooler is not None, "dropout": 0.1} | norm | changes  # fmt: skip
    return recipe.replace(
        arrange=FromTask(),
        hide=Rewrite() if "decoder" in recipe.system.backbone.gives else Nothing(),
        see=recipe.see.reading,
        system=Single(backbone=recipe.system.backbone),
        predict={"label": Label(**head)},
        task=Classify(labels=("bad", "fair", "good")),
        tracks={},
        writes_with=None,
    )


def opened(auto: Any, folder: Path) -> Any:
    """A network of transformers that lacks nothing and has nothing left over."""
    network, info = auto.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    return network.eval()


def opened_by_auto(architecture: str, folder: Path) -> Any:
    network = opened(next(auto for ending, auto in AUTO.items() if architecture.endswith(ending)), folder)
    assert type(network).__name__ == architecture
    return network


def from_text(network: Any, folder: Path, texts: list[Text]) -> tuple[Any, Any]:
    """What transformers makes of raw text with what lies in the folder alone."""
    return answers_of(network, folder, [texts])[0][1:]


def answers_of(network: Any, folder: Path, lists: list[list[Text]]) -> list[tuple[list[Text], Any, Any]]:
    """The same of several lists of texts: each list, what the network computes of it, and what it reads."""
    tokenizer, found = hf.AutoTokenizer.from_pretrained(folder), []
    for texts in lists:
        second = [text.b for text in texts] if texts[0].b is not None else None
        encoded = tokenizer([t.a for t in texts], second, padding=True, return_tensors="pt")
        with torch.no_grad():
            found.append((texts, network(**encoded, output_hidden_states=True), encoded))
    return found


def texts_for(model: Model) -> list[list[Text]]:
    """Single texts; and pairs of texts, if the layout has a place for the second."""
    return [TEXTS, PAIRS] if "b" in model.recipe.layout.split() else [TEXTS]


def assert_same_numbers(model: Model, folder: Path, network: Any, left_out: tuple[str, ...]) -> None:
    """Every vector and every score that transformers computes from raw text is ours."""
    assert_same_answers(model, answers_of(network, folder, texts_for(model)), left_out)


def assert_same_answers(model: Model, answers: list[tuple[list[Text], Any, Any]], left_out: tuple[str, ...]) -> None:
    assert answers
    for texts, theirs, encoded in answers:
        there = encoded["attention_mask"].bool()
        batch, hidden = look(model, texts)
        assert torch.equal(encoded["input_ids"][there], batch.ids[batch.real])
        layers = theirs.encoder_hidden_states if "encoder_hidden_states" in theirs else theirs.hidden_states
        for mine, other in zip(hidden.layers, layers, strict=True):
            torch.testing.assert_close(mine[batch.real], other[there], **PARITY)
        for head in (head for head in model.system.predict if head not in left_out):
            mine = score(model, head, batch, hidden)
            other = theirs[next(name for name in HEADS.get(head, ("logits",)) if name in theirs)]
            per_token = mine.shape[:2] == batch.shape
            both = (mine[batch.real], other[there]) if per_token else (mine, other)
            torch.testing.assert_close(*both, **PARITY)
