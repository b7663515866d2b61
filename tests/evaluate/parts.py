"""What the tests of language models are made of: a small GPT-2, a text, and transformers' network of the same weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
import transformers as hf

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from unmask.convert import export_hf
from unmask.infer.model import Model

LENGTH = 24  # of the rows that the small model reads
DOCUMENTS = ["\n".join(SENTENCES[:2]), SENTENCES[2], "Où est l’été? 今天下雨了。 " + SENTENCES[3]]


def language_model(folder: Path, *settings: str, kind: str = "gpt2") -> Model:
    recipe = recipe_of("gpt2", f"system.backbone.length={LENGTH}", "schedule.0.length=16", *settings)
    recipe = recipe.replace(schedule=(type(recipe.schedule[0])(length=16),), reads=LENGTH)
    return model_of(recipe, tokenizer(kind), folder)


def written(path: Path, documents: list[str] = DOCUMENTS) -> Path:
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


def stream_of(model: Model, documents: list[str] = DOCUMENTS) -> list[int]:
    """The tokens by hand: an end of document before all, and after each."""
    end = model.tokenizer.role("sep")
    lines = [[line + "\n" for line in text.split("\n")[:-1]] + [text.split("\n")[-1]] for text in documents]
    return [end] + [i for text in lines for i in [j for line in text for j in model.tokenizer.encode(line)] + [end]]


def exported(model: Model, folder: Path) -> Any:
    export_hf(model, folder)
    return hf.GPT2LMHeadModel.from_pretrained(folder).eval()


def log_probability(network: Any, before: list[int], token: int) -> float:
    """What transformers says of one token after some others."""
    with torch.no_grad():
        scores = network(torch.tensor([before])).logits[0, -1].double()
    return float(scores[token]) - math.log(float((scores - scores.max()).exp().sum())) - float(scores.max())
