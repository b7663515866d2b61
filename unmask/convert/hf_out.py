"""Export a model to a folder that Hugging Face's Auto classes can open without other files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unmask.convert import config_json, recipe_facts
from unmask.convert import tokenizer as tokenizers
from unmask.convert.architecture import Architecture, architecture_of, backbone_of
from unmask.convert.hf_folder import WEIGHTS
from unmask.convert.merge import merged_model
from unmask.convert.single_network import single_model
from unmask.convert.written_tensors import written_tensors
from unmask.errors import require
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.recipe import Recipe
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    architecture: str  # the Hugging Face class
    files: tuple[str, ...]  # the files that were written
    left_out: tuple[str, ...]  # heads and networks of the run that the architecture has no place for
    notes: tuple[str, ...] = ()  # what a user of the folder must know


def export_hf(model: Model, out: str | Path, *, generator: bool = False, overwrite: bool = False) -> Exported:
    """Write the model in Hugging Face's format. `generator`: write the generator instead of the discriminator."""
    out = Path(out)
    require(overwrite or not out.exists(), "{out} exists already: choose another folder, or pass --overwrite", out=out)
    model = merged_model(model)
    found = architecture_of(model.recipe, generator=generator)
    model, _ = single_model(model, generator=generator)
    tokenizer = _tokenizer(model, found)
    tensors = written_tensors(model, found, tokenizer)
    texts = _texts(model, found, tokenizer, tensors)
    out.mkdir(parents=True, exist_ok=True)
    (out / tokenizers.VOCABULARY).unlink(missing_ok=True)  # from an earlier export with another tokenizer
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    checkpoint.save_tensors(tensors, out / WEIGHTS)
    files, notes = tuple(sorted([*texts, WEIGHTS])), tokenizers.notes(tokenizer, found.family)
    return Exported(found.name, files, found.left_out, notes)


def _tokenizer(model: Model, found: Architecture) -> Tokenizer:
    """The tokenizer with a padding token that Hugging Face can distinguish from the text.

    Hugging Face predicts a label from the last token that is not padding."""
    specials = [layouts.SPECIALS[word] for word in model.recipe.layout.split() if word in layouts.SPECIALS]
    shared = model.tokenizer.vocabulary.pad in [model.tokenizer.role(role) for role in specials]
    require(
        not shared or not found.family.needs_own_pad,
        (
            "Hugging Face's {model_type} gives padding no position, and here the padding token also frames texts: "
            "train with a tokenizer that has a [PAD]"
        ),
        model_type=found.family.model_type,
    )
    last = found.family.summary == "last" and (found.heads.label or found.heads.choice)
    return tokenizers.with_own_pad(model.tokenizer) if shared and last else model.tokenizer


def _texts(model: Model, found: Architecture, tokenizer: Tokenizer, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """The contents of all files except the weights, by file name."""
    layout, segments = model.recipe.layout, backbone_of(model.recipe).segments > 1
    settings = tokenizers.settings(tokenizer, found.family, layout, model.length, segments)
    return {
        "config.json": _dumped(_config(model, found, tokenizer, tensors)),
        "tokenizer.json": tokenizers.framed(tokenizer, layout, segments).to_str(pretty=True),
        "tokenizer_config.json": _dumped(settings),
        **tokenizers.vocabulary_file(tokenizer),
    }


def _config(model: Model, found: Architecture, tokenizer: Tokenizer, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    begin, end = tokenizers.ends(tokenizer, model.recipe.layout)
    first_written = found.family.config.first_written
    table = tensors[found.family.names.token]
    label = model.recipe.predict[found.heads.label] if found.heads.label else None
    return {
        "architectures": [found.name],
        "model_type": found.family.model_type,
        "dtype": str(table.dtype).removeprefix("torch."),
        "vocab_size": len(table),
        "pad_token_id": tokenizer.vocabulary.pad,
        "bos_token_id": begin,
        "eos_token_id": end,
        "tie_word_embeddings": found.heads.tied,
        **{name: tokenizer.roles.get(role) for name, role in found.family.config.token_ids.items()},
        **({first_written: None if begin == end else begin} if first_written else {}),
        **config_json.write_values(found.family, backbone_of(model.recipe), tokenizer.vocabulary.pad),
        **(_classes(found, model.recipe, label) if isinstance(label, Label) else {}),
        **(_tags(found, model.recipe, model.recipe.predict[found.heads.tags]) if found.heads.tags else {}),
        **(_choice(found, model.recipe.predict[found.heads.choice]) if found.heads.choice else {}),
    }


def _classes(found: Architecture, recipe: Recipe, label: Label) -> dict[str, Any]:
    problems = {"classes": "multi_label_classification", "number": "regression"}
    return {
        **_named(recipe_facts.class_names(recipe, label)),
        **({"problem_type": problems[label.answer]} if label.answer in problems else {}),
        found.family.config.label_dropout[0]: label.dropout,
        **_pooling(found, label),
    }


def _choice(found: Architecture, head: Any) -> dict[str, Any]:
    return {found.family.config.before_choice[0]: head.dropout, **_pooling(found, head)}


def _pooling(found: Architecture, head: Any) -> dict[str, Any]:
    return {"classifier_pooling": found.family.pools[head.pool]} if found.family.pools else {}


def _tags(found: Architecture, recipe: Recipe, head: Any) -> dict[str, Any]:
    names = recipe.task.labels if recipe.task is not None else ()
    own = names or tuple(f"LABEL_{i}" for i in range(head.classes))
    return _named(own) | {found.family.config.label_dropout[0]: head.dropout}


def _named(names: Sequence[str]) -> dict[str, Any]:
    """The names of the classes as config.json has them."""
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
