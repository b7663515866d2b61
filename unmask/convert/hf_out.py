"""Export: a model becomes a folder that Hugging Face's Auto classes open with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from unmask.backbone import Transformer
from unmask.convert import config as configs
from unmask.convert import names
from unmask.convert import tokenizer as tokenizers
from unmask.convert.names import Heads, Kind
from unmask.convert.recipe_out import backbone_of, heads_of, kind_of
from unmask.convert.source import WEIGHTS
from unmask.errors import require
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint


def export_hf(model: Model, out: str | Path, *, overwrite: bool = False) -> list[str]:
    """Write the model in Hugging Face's format; returns the files written."""
    out, recipe = Path(out), model.recipe
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    kind, backbone = kind_of(recipe), backbone_of(recipe)
    heads = heads_of(recipe, kind)
    tokenizer = _tokenizer(model, kind, heads)
    tensors = _tensors(model, kind, heads, tokenizer)
    segments = backbone.segments > 1
    texts = {
        "config.json": _dumped(_config(model, kind, heads, tokenizer, tensors)),
        "tokenizer.json": tokenizers.framed(tokenizer, recipe.layout, segments).to_str(pretty=True),
        "tokenizer_config.json": _dumped(tokenizers.settings(tokenizer, recipe.layout, model.length, segments)),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    return sorted([*texts, WEIGHTS])


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
    return tokenizers.with_own_pad(model.tokenizer) if shared and kind == "gpt2" and heads.label else model.tokenizer


def _tensors(model: Model, kind: Kind, heads: Heads, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Every tensor under Hugging Face's name."""
    backbone = backbone_of(model.recipe)
    ours = {name: tensor.cpu() for name, tensor in checkpoint.unique(model.system).items()}
    links = names.links(kind, backbone.layers, backbone.segments, heads)
    strange = sorted(ours.keys() - {link.ours for link in links})
    require(
        not strange,
        f"Hugging Face's {kind} has no place for {', '.join(strange[:3])}: merge or remove such parts first",
    )
    whole = _zero_biases(heads, tokenizer.vocabulary.size, ours) | ours
    found = {name: tensor for link in links for name, tensor in link.write(whole[link.ours]).items()}
    if heads.tokens and not heads.tied and names.bias(kind) in found:  # what is not tied has a bias of its own
        found[names.output(kind).replace("weight", "bias")] = found[names.bias(kind)].clone()
    return _padded(found, kind, backbone, tokenizer)


def _zero_biases(heads: Heads, vocabulary: int, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Hugging Face's heads have biases where ours may have none."""
    found = {f"predict.{heads.tokens}.bias": torch.zeros(vocabulary)} if heads.tokens else {}
    for name in filter(None, (heads.sentence, heads.label)):
        found[f"predict.{name}.out.bias"] = torch.zeros(len(ours[f"predict.{name}.out.weight"]))
    return found


def _padded(tensors: dict[str, Tensor], kind: Kind, backbone: Transformer, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """With the rows that are there but say nothing: positions before the first, the only segment, added padding."""
    found = dict(tensors)
    position, token = found[names.position(kind)], found[names.embedding(kind)]
    before = configs.offset(kind, tokenizer.vocabulary.pad)
    found[names.position(kind)] = torch.cat((position.new_zeros(before, backbone.width), position))
    found[names.embedding(kind)] = torch.cat(
        (token, token.new_zeros(tokenizer.vocabulary.size - len(token), backbone.width))
    )
    if kind != "gpt2" and not backbone.segments:
        found[names.segment(kind)] = position.new_zeros(1, backbone.width)
    return found


def _config(
    model: Model, kind: Kind, heads: Heads, tokenizer: Tokenizer, tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    begin, end = tokenizers.ends(tokenizer, model.recipe.layout)
    table = tensors[names.embedding(kind)]
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
        **(_classes(labels) if isinstance(labels, Label) else {}),
    }


def _classes(label: Label) -> dict[str, Any]:
    class_names = label.names or tuple(f"LABEL_{i}" for i in range(label.classes))
    return {
        "id2label": {str(i): name for i, name in enumerate(class_names)},
        "label2id": {name: i for i, name in enumerate(class_names)},
        "classifier_dropout": label.dropout,
    }


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
