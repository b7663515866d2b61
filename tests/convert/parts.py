"""What the conversion tests are made of: tiny tokenizers, tiny networks of both kinds, and ways to compare them."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor, nn

from unmask import recipes, text
from unmask.backbone import TransformerXL
from unmask.backbone.auto_dropout import OFTEN
from unmask.batch import Batch, Hidden
from unmask.convert import architecture_of
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer.model import Model, open_run
from unmask.pretraining.choose_dropout import with_dropout
from unmask.recipe import Recipe
from unmask.system import GeneratorDiscriminator
from unmask.text import Tokenizer

SENTENCES = [
    "The cat sat on the mat, and the dog ran away.",
    "Birds fly over the old houses every morning.",
    "A small boat crossed the river in the rain!",
    "Nobody knows why the sun was so hot today.",
]
TEXTS = [Text(SENTENCES[0]), Text(SENTENCES[1][:20]), Text("rain")]
PAIRS = [Text(SENTENCES[2], SENTENCES[3]), Text("the cat", "a dog ran"), Text(SENTENCES[0], "sun")]
PARITY = {"atol": 1e-4, "rtol": 1e-4}


@cache
def _trained(kind: str) -> str:
    kinds: dict[str, Any] = {
        "wordpiece": text.WordPiece(vocab=70),
        "byte": text.ByteBPE(vocab=300),
        "unigram": text.Unigram(vocab=50),
        "word": text.WordBPE(vocab=90),
        "bpe": text.BPE(vocab=80),
    }
    return text.train(kinds[kind], SENTENCES * 3).backend.to_str()


_NAMES = {
    text.WordPiece: "wordpiece",
    text.ByteBPE: "byte",
    text.Unigram: "unigram",
    text.WordBPE: "word",
    text.BPE: "bpe",
}


def tokenizer_for(recipe: Recipe) -> Tokenizer:
    """A small tokenizer of the kind that a recipe has."""
    kind = type(recipe.tokenizer)
    if kind in _NAMES:
        return tokenizer(_NAMES[kind])
    return text.train(dataclasses.replace(recipe.tokenizer, vocab=300), SENTENCES * 3)


def tokenizer(kind: str = "wordpiece") -> Tokenizer:
    """A small tokenizer; those of "gpt2" and "openai" have a single special token, as GPT-2's and GPT's have."""
    alike = {
        "gpt2": ("byte", text.tokenizer.ROBERTA_NAMES, "<|endoftext|>"),
        "openai": ("word", text.tokenizer.GPT_NAMES, "<unk>"),
    }
    if kind not in alike:
        return Tokenizer(Backend.from_str(_trained(kind)))
    base, without, special = alike[kind]
    known = json.loads(_trained(base))
    vocabulary = [token for token in known["model"]["vocab"] if token not in without]
    known["model"]["vocab"] = {token: i for i, token in enumerate([*vocabulary, special])}
    known["added_tokens"] = []
    backend = Backend.from_str(json.dumps(known))
    backend.add_special_tokens([special])
    return Tokenizer(backend)


def shaken(network: nn.Module) -> Any:
    """The same network with weights that are all different, the biases and norms too."""
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.1)
    return network.eval()


def folder_of(network: Any, tokens: Tokenizer, folder: Path) -> Path:
    """A Hugging Face folder."""
    network.save_pretrained(folder)
    tokens.save(folder / "tokenizer.json")
    return folder


def edit_json(path: Path, **changes: Any) -> None:
    known = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in (known | changes).items() if value is not None}))


def model_of(recipe: Recipe, tokens: Tokenizer, folder: Path) -> Model:
    system = recipe.system.build(recipe, tokens.vocabulary, 0)  # type: ignore[attr-defined]
    return Model(shaken(system), recipe, tokens, folder)


SHAPE = [f"system.backbone.{name}" for name in ("layers=2", "width=16", "heads=2", "feedforward=24", "length=64")]
GENERATOR = [f"system.generator.{name}" for name in ("width=8", "heads=1", "feedforward=12")]


@cache
def _shape(name: str) -> list[str]:
    """The settings that make a recipe's network tiny."""
    recipe = recipes.get(name, size="tiny")
    backbone = recipe.system.backbone
    found = [setting for setting in SHAPE if hasattr(backbone, setting.split("=")[0].rpartition(".")[2])]
    if isinstance(recipe.tokenizer, text.Unigram):  # it splits these sentences into more tokens
        found.append("system.backbone.length=96")
    if isinstance(backbone, TransformerXL):
        found += ["system.backbone.head=8", "system.backbone.memory=12"]
    if isinstance(recipe.system, GeneratorDiscriminator):
        found += GENERATOR
    return found + _of_architecture(recipe)


def _of_architecture(recipe: Recipe) -> list[str]:
    """Some architectures have embeddings of their own width; some a feed-forward layer four times as wide as others."""
    try:
        fields = architecture_of(recipe).family.config.fields
    except UserError:
        return []
    wide = [] if "feedforward" in fields else ["system.backbone.feedforward=64"]
    return wide + (["system.backbone.embedding=12"] if "embedding" in fields else [])


def recipe_of(name: str, *settings: str) -> Recipe:
    recipe = recipes.get(name, size="tiny", settings=[*_shape(name), *settings])
    stage = type(recipe.schedule[0])(length=32, turns=recipe.schedule[0].turns)
    return with_dropout(recipe.replace(schedule=(stage,), reads=recipe.system.backbone.length), visits=OFTEN)


def look(model: Model, texts: list[Text]) -> tuple[Batch, Hidden]:
    """What our network makes of these texts."""
    rows, _ = rows_of(texts, [0] * len(texts), model.tokenizer, model.recipe.layout, model.length)
    batch = batch_of(rows, np.arange(len(texts)))
    with torch.no_grad():
        batch = model.system.read(batch)
        return batch, model.system.look(batch)


def score(model: Model, head: str, batch: Batch, hidden: Hidden) -> Tensor:
    with torch.no_grad():
        return model.system.predict[head].decode(hidden, batch)


def run(network: Any, batch: Batch, *, segments: bool) -> Any:
    """What Hugging Face's network makes of the same batch."""
    extra = {"token_type_ids": batch.segment} if segments else {}
    with torch.no_grad():
        return network(input_ids=batch.ids, attention_mask=batch.real.long(), output_hidden_states=True, **extra)


def generate(model: Model, batch: Batch) -> tuple[Hidden, Tensor]:
    """What the generator of a pair makes of a batch: its vectors and its token scores."""
    with torch.no_grad():
        hidden, _ = model.system.generator(model.recipe.see.apply(batch))
        return hidden, model.system.fill.decode(hidden, batch)


def assert_same_vectors(ours: Hidden, theirs: Any, batch: Batch) -> None:
    """Every layer, at every token that is not padding."""
    assert len(ours.layers) == len(theirs.hidden_states)
    for mine, other in zip(ours.layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(mine[batch.real], other[batch.real], **PARITY)


def weights(folder: Path) -> dict[str, Tensor]:
    return dict(open_run(folder, device="cpu").system.named_parameters())
