"""The names of tensors: ours, Hugging Face's, and how the one is made of the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["bert", "roberta", "gpt2"]  # Hugging Face's `model_type`

PREFIX: dict[Kind, str] = {"bert": "bert.", "roberta": "roberta.", "gpt2": "transformer."}  # of a network under a head
_STEMS = {"embeddings", "encoder", "pooler", "wte", "wpe", "h", "ln_f"}  # first words of names inside a network
# What can be computed from the rest: the causal masks of GPT-2, the numbers of positions and segments of BERT.
_COMPUTED = re.compile(r"\.attn\.(masked_)?bias$|\.(position_ids|token_type_ids)$")
_RENAMED = (
    (re.compile(r"LayerNorm\.gamma$"), "LayerNorm.weight"),  # as converted from TensorFlow
    (re.compile(r"LayerNorm\.beta$"), "LayerNorm.bias"),
    (re.compile(r"^(cls\.predictions|lm_head)\.decoder\.bias$"), r"\1.bias"),  # one tensor under two names
)


@dataclass(frozen=True)
class Heads:
    """The objectives of a model by the names that its recipe gives them."""

    tokens: str | None = None
    sentence: str | None = None
    label: str | None = None
    tied: bool = True  # the output weights of `tokens` are the token embeddings


@dataclass(frozen=True)
class Link:
    """One tensor of ours, and those of theirs that hold the same numbers."""

    ours: str
    theirs: tuple[str, ...]  # several are joined along the first dimension
    transposed: bool = False  # theirs is stored input first (GPT-2's Conv1D)

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([self._turn(tensors[name]) for name in self.theirs])

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        parts = tensor.chunk(len(self.theirs))
        return {name: self._turn(part).contiguous() for name, part in zip(self.theirs, parts, strict=True)}

    def _turn(self, tensor: Tensor) -> Tensor:
        return tensor.T if self.transposed else tensor


def architecture(kind: Kind, heads: Heads) -> str:
    """Hugging Face's name for a network with these heads."""
    title = {"bert": "Bert", "roberta": "Roberta", "gpt2": "GPT2"}[kind]
    if heads.label:
        return f"{title}ForSequenceClassification"
    if heads.sentence:
        return f"{title}ForPreTraining" if heads.tokens else f"{title}ForNextSentencePrediction"
    if heads.tokens:
        return f"{title}LMHeadModel" if kind == "gpt2" else f"{title}ForMaskedLM"
    return f"{title}Model"


def canonical(kind: Kind, name: str) -> str:
    """A name as the newest files write it under a head."""
    if name.split(".")[0] in _STEMS:
        name = PREFIX[kind] + name
    for old, new in _RENAMED:
        name = old.sub(new, name)
    return name


def computed(name: str) -> bool:
    """Does a file hold this only for convenience?"""
    return bool(_COMPUTED.search(name))


def embedding(kind: Kind) -> str:
    return PREFIX[kind] + ("wte.weight" if kind == "gpt2" else "embeddings.word_embeddings.weight")


def position(kind: Kind) -> str:
    return PREFIX[kind] + ("wpe.weight" if kind == "gpt2" else "embeddings.position_embeddings.weight")


def segment(kind: Kind) -> str:
    return PREFIX[kind] + "embeddings.token_type_embeddings.weight"


def pooler(kind: Kind) -> str:
    return PREFIX[kind] + "pooler.dense"


def output(kind: Kind) -> str:
    """The output weights of the head that predicts tokens."""
    return {"bert": "cls.predictions.decoder.weight", "roberta": "lm_head.decoder.weight", "gpt2": "lm_head.weight"}[
        kind
    ]


def bias(kind: Kind) -> str:
    """The bias of the head that predicts tokens."""
    return "cls.predictions.bias" if kind == "bert" else "lm_head.bias"


def per_token(kind: Kind) -> tuple[str, ...]:
    """The tensors with one row per token of the vocabulary."""
    return embedding(kind), output(kind), bias(kind)


def classifier(kind: Kind) -> str:
    """The output layer of the head that predicts a label."""
    return {"bert": "classifier", "roberta": "classifier.out_proj", "gpt2": "score"}[kind]


def links(kind: Kind, layers: int, segments: int, heads: Heads) -> list[Link]:
    """Every tensor of a model of ours, linked."""
    found = _gpt2(layers) if kind == "gpt2" else _bert(kind, layers, segments)
    if heads.tokens:
        found += _tokens(kind, f"predict.{heads.tokens}", heads.tied)
    if heads.sentence:
        found += _layer(f"predict.{heads.sentence}.dense", pooler(kind))
        found += _layer(f"predict.{heads.sentence}.out", "cls.seq_relationship")
    if heads.label:
        found += _label(kind, f"predict.{heads.label}")
    return found


def _layer(ours: str, *theirs: str, transposed: bool = False) -> list[Link]:
    """The weight and the bias of a layer."""
    return [
        Link(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), transposed),
        Link(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs)),
    ]


def _bert(kind: Kind, layers: int, segments: int) -> list[Link]:
    found = [
        Link("backbone.embed.token.weight", (embedding(kind),)),
        Link("backbone.embed.position.weight", (position(kind),)),
        *([Link("backbone.embed.segment.weight", (segment(kind),))] if segments else []),
        *_layer("backbone.embed.norm", f"{PREFIX[kind]}embeddings.LayerNorm"),
    ]
    for i in range(layers):
        ours, theirs = f"backbone.blocks.{i}", f"{PREFIX[kind]}encoder.layer.{i}"
        found += _layer(f"{ours}.attention.qkv", *(f"{theirs}.attention.self.{x}" for x in ("query", "key", "value")))
        found += _layer(f"{ours}.attention.out", f"{theirs}.attention.output.dense")
        found += _layer(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
        found += _layer(f"{ours}.mlp.up", f"{theirs}.intermediate.dense")
        found += _layer(f"{ours}.mlp.down", f"{theirs}.output.dense")
        found += _layer(f"{ours}.mlp_norm", f"{theirs}.output.LayerNorm")
    return found


def _gpt2(layers: int) -> list[Link]:
    prefix = PREFIX["gpt2"]
    found = [
        Link("backbone.embed.token.weight", (embedding("gpt2"),)),
        Link("backbone.embed.position.weight", (position("gpt2"),)),
        *_layer("backbone.final_norm", f"{prefix}ln_f"),
    ]
    for i in range(layers):
        ours, theirs = f"backbone.blocks.{i}", f"{prefix}h.{i}"
        found += _layer(f"{ours}.attention_norm", f"{theirs}.ln_1")
        found += _layer(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", transposed=True)
        found += _layer(f"{ours}.attention.out", f"{theirs}.attn.c_proj", transposed=True)
        found += _layer(f"{ours}.mlp_norm", f"{theirs}.ln_2")
        found += _layer(f"{ours}.mlp.up", f"{theirs}.mlp.c_fc", transposed=True)
        found += _layer(f"{ours}.mlp.down", f"{theirs}.mlp.c_proj", transposed=True)
    return found


def _tokens(kind: Kind, ours: str, tied: bool) -> list[Link]:
    found = [] if tied else [Link(f"{ours}.weight", (output(kind),))]
    if kind == "gpt2":
        return found
    dense, norm = {
        "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        "roberta": ("lm_head.dense", "lm_head.layer_norm"),
    }[kind]
    return found + _layer(f"{ours}.dense", dense) + _layer(f"{ours}.norm", norm) + [Link(f"{ours}.bias", (bias(kind),))]


def _label(kind: Kind, ours: str) -> list[Link]:
    if kind == "gpt2":
        return [Link(f"{ours}.out.weight", ("score.weight",))]
    dense = pooler(kind) if kind == "bert" else "classifier.dense"
    return _layer(f"{ours}.dense", dense) + _layer(f"{ours}.out", classifier(kind))
