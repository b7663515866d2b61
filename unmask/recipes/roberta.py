"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): hide 15% of tokens, different ones at every visit, see everything, predict them."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Adapt, Recipe, Stage

_SHAPE: dict[str, Any] = {"epsilon": 1e-5, "initial": "normal"}
# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, deviation=0.06, **_SHAPE, **_NEAR),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, deviation=0.042, **_SHAPE, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, deviation=0.03, **_SHAPE, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, deviation=0.03, **_SHAPE, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: 8,192 rows of 512 tokens a step, rate 6e-4 (base) and 4e-4 (large) after 24k and 30k of 500k steps.
# It does not have the smaller sizes; they have a higher rate and a smaller batch.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 6e-4, "large": 4e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 8192, "large": 8192}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"cross": True, "copies": None},
    "document": {
        "cross": False,
        "copies": None,
    },  # a block ends where its document ends; the paper found this slightly better
    "static": {"cross": True, "copies": 10},  # for comparison: ten masked versions of the text, as in BERT
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen = VARIANTS[variant]
    return Recipe(
        name="roberta",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=50_265),
        layout="[CLS] a [SEP] [SEP] b [SEP]",
        arrange=data.Blocks(cross=chosen["cross"]),
        hide=hide.Masked(
            units=hide.Tokens(), budget=0.15, replace=hide.Mask(mask=0.8, random=0.1), copies=chosen["copies"]
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, epsilon=1e-5)},
        optimise=train.AdamW(
            rate=RATES[size], betas=(0.9, 0.98), decay=0.01, warmup=0.06 if size == "large" else 0.048, clip=None
        ),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        adapt=Adapt(rate=2e-5, warmup=0.06, epochs=10.0, decay=0.1),  # the paper tries 1e-5, 2e-5 and 3e-5
        shrink=size not in PAPER,
    )
