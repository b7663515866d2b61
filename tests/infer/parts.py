"""What the tests of inference are made of: a tiny GPT-2 whose weights are all different, and transformers' twin of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as hf

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from unmask.convert import export_hf
from unmask.infer import Model

PROMPTS = ["The cat sat on", "A", SENTENCES[2], "rain"]


def gpt2(folder: Path, *settings: str, ends: float = 0.0) -> Model:
    """`ends`: how much the score of the end is raised at every place, so that texts do end."""
    model = model_of(recipe_of("gpt2", "system.backbone.deviation=0.02", *settings), tokenizer("gpt2"), folder)
    network = model.system.backbone
    with torch.no_grad():
        network.embed.token.weight.mul_(3.0)  # so that some tokens are much likelier than others
        if ends:
            end = network.embed.token.weight[model.tokenizer.role("sep")]
            network.final_norm.bias.add_(ends * end / end.square().sum())
    return model


def twin(model: Model, folder: Path) -> Any:
    """The same network in transformers."""
    export_hf(model, folder)
    return hf.GPT2LMHeadModel.from_pretrained(folder).eval()


def theirs(network: Any, model: Model, prompt: str, **options: Any) -> list[list[int]]:
    """The new tokens that transformers writes after a prompt, without the end."""
    end = model.tokenizer.role("sep")
    ids = torch.tensor([model.tokenizer.encode(prompt)])
    options = {"do_sample": False, "eos_token_id": end, "pad_token_id": end} | options
    found = network.generate(ids, attention_mask=torch.ones_like(ids), **options)[:, ids.shape[1] :].tolist()
    return [row[: row.index(end)] if end in row else row for row in found]
