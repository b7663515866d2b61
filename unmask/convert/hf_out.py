"""Export: a model becomes a folder that Hugging Face's Auto classes open with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unmask.backbone import TransformerXL
from unmask.convert import config as configs
from unmask.convert import linear, names, single_network
from unmask.convert import tokenizer as tokenizers
from unmask.convert.config import FAMILIES, Backbone
from unmask.convert.exported_values import check_known
from unmask.convert.hf_folder import WEIGHTS
from unmask.convert.names import NAMES, Heads, Kind
from unmask.convert.recipe_out import backbone_of, shape_of
from unmask.convert.tensor_pairs import links
from unmask.errors import require
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint


@dataclass(frozen=True)
class Exported:
    """What became of a model."""

    architecture: str  # Hugging Face's name for it
    files: tuple[str, ...]
    left_out: tuple[str, ...]  # what the run has and Hugging Face's architecture has no place for
    notes: tuple[str, ...] = ()  # what somebody who opens the folder must know


def export_hf(model: Model, out: str | Path, *, generator: bool = False, overwrite: bool = False) -> Exported:
    """Write the model in Hugging Face's format; of a discriminator and a generator, the one or the other."""
    out = Path(out)
    require(overwrite or not out.exists(), f"{out} exists already: choose another folder, or pass --overwrite")
    check_known(model.recipe)
    model, other = single_network.model(model, generator=generator)
    recipe, backbone = model.recipe, backbone_of(model.recipe)
    kind, heads, headless = shape_of(recipe)
    tokenizer = _tokenizer(model, kind, heads)
    tensors = _tensors(model, kind, heads, tokenizer, headless)
    segments = backbone.segments > 1
    texts = {
        "config.json": _dumped(_config(model, kind, heads, tokenizer, tensors)),
        "tokenizer.json": tokenizers.framed(tokenizer, recipe.layout, segments).to_str(pretty=True),
        "tokenizer_config.json": _dumped(tokenizers.settings(tokenizer, kind, recipe.layout, model.length, segments)),
    } | tokenizers.vocabulary_file(tokenizer)
    out.mkdir(parents=True, exist_ok=True)
    (out / tokenizers.VOCABULARY).unlink(missing_ok=True)  # of an export before, which had another tokenizer
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    checkpoint.save_tensors(tensors, out / WEIGHTS)
    files, notes = tuple(sorted([*texts, WEIGHTS])), tokenizers.notes(tokenizer, kind)
    return Exported(names.architecture(kind, heads), files, headless + other, notes)


def _tokenizer(model: Model, kind: Kind, heads: Heads) -> Tokenizer:
    """The tokenizer with a padding token that Hugging Face can tell from the text.

    RoBERTa counts its positions over what is not padding, and GPT-2 reads a label off the last token that is not."""
    specials = [layouts.SPECIALS[word] for word in model.recipe.layout.split() if word in layouts.SPECIALS]
    shared = model.tokenizer.vocabulary.pad in [model.tokenizer.role(role) for role in specials]
    require(
        not shared or kind != "roberta",
        "Hugging Face's roberta gives padding no position, and here the padding token also frames texts: "
        "train with a tokenizer that has a [PAD]",
    )
    return (
        tokenizers.with_own_pad(model.tokenizer) if shared and FAMILIES[kind].last and heads.label else model.tokenizer
    )


def _tensors(
    model: Model, kind: Kind, heads: Heads, tokenizer: Tokenizer, left_out: tuple[str, ...]
) -> dict[str, Tensor]:
    """Every tensor under Hugging Face's name."""
    called, gone = NAMES[kind], tuple(f"predict.{name}." for name in left_out)
    whole = {name: tensor.cpu() for name, tensor in checkpoint.unique(model.system).items()}
    ours = {name: tensor for name, tensor in whole.items() if not name.startswith(gone)}
    backbone = backbone_of(model.recipe)
    label: Any = model.recipe.predict[heads.label] if heads.label else None
    if label and linear.fits(label, FAMILIES[kind].pooler, backbone.width):
        ours = linear.doubled(str(heads.label), ours)
    strange = sorted(ours.keys() - {link.ours for link in links(kind, heads, ours, backbone)})
    require(
        not strange,
        f"Hugging Face's {kind} has no place for {', '.join(strange[:3])}: merge or remove such parts first",
    )
    ours = _zero_biases(heads, tokenizer.vocabulary.size, ours) | _zero_segments(backbone) | ours
    known = links(kind, heads, ours, backbone)
    found = {name: tensor for link in known for name, tensor in link.write(ours[link.ours]).items()}
    if heads.tokens and not heads.tied and "bias" in called.tokens:  # what is not tied has a bias of its own
        found[called.output.replace("weight", "bias")] = found[called.tokens["bias"][0]].clone()
    return _padded(found, kind, backbone, tokenizer)


def _zero_biases(heads: Heads, vocabulary: int, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Hugging Face's heads have biases where ours may have none."""
    found = {f"predict.{heads.tokens}.bias": torch.zeros(vocabulary)} if heads.tokens else {}
    for name in filter(None, (heads.sentence, heads.label)):
        found[f"predict.{name}.out.bias"] = torch.zeros(len(ours[f"predict.{name}.out.weight"]))
    return found


def _zero_segments(backbone: Backbone) -> dict[str, Tensor]:
    """Hugging Face's relative attention tells segments apart where ours may not."""
    if not isinstance(backbone, TransformerXL) or backbone.segments:
        return {}
    shape = (backbone.heads, backbone.head)
    shapes = {"segment_bias": shape, "segment": (2, *shape)}
    return {
        f"backbone.blocks.{i}.attention.{name}": torch.zeros(size)
        for i in range(backbone.layers)
        for name, size in shapes.items()
    }


def _padded(tensors: dict[str, Tensor], kind: Kind, backbone: Backbone, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """With the rows that are there but say nothing: positions before the first, the only segment, added padding."""
    found, called = dict(tensors), NAMES[kind]
    token = found[called.token]
    if called.position:
        before = token.new_zeros(configs.offset(kind, tokenizer.vocabulary.pad), token.shape[1])
        found[called.position] = torch.cat((before, found[called.position]))
    found[called.token] = torch.cat((token, token.new_zeros(tokenizer.vocabulary.size - len(token), token.shape[1])))
    if called.segment and not backbone.segments:
        found[called.segment] = token.new_zeros(1, token.shape[1])
    if called.maps and backbone.embedding in (None, backbone.width):
        weight, bias = (called.prefix + called.network[f"project.{which}"][0] for which in ("weight", "bias"))
        found |= {weight: torch.eye(backbone.width), bias: torch.zeros(backbone.width)}
    return found


def _config(
    model: Model, kind: Kind, heads: Heads, tokenizer: Tokenizer, tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    begin, end = tokenizers.ends(tokenizer, model.recipe.layout)
    table = tensors[NAMES[kind].token]
    labels = model.recipe.predict[heads.label] if heads.label else None
    return {
        "architectures": [names.architecture(kind, heads)],
        "model_type": kind,
        "dtype": str(table.dtype).removeprefix("torch."),
        "vocab_size": len(table),
        "pad_token_id": tokenizer.vocabulary.pad,
        "bos_token_id": begin,
        "eos_token_id": end,
        "tie_word_embeddings": heads.tied,
        **configs.numbers(kind, backbone_of(model.recipe), tokenizer.vocabulary.pad),
        **(_classes(kind, labels, model.labels) if isinstance(labels, Label) else {}),
    }


def _classes(kind: Kind, label: Label, known: tuple[str, ...]) -> dict[str, Any]:
    class_names = known or tuple(f"LABEL_{i}" for i in range(label.classes))
    return {
        "id2label": {str(i): name for i, name in enumerate(class_names)},
        "label2id": {name: i for i, name in enumerate(class_names)},
        FAMILIES[kind].dropout[0]: label.dropout,
    }


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
