"""Transformer-XL (Dai et al. 2019, arXiv:1901.02860): hide nothing, see the tokens before and a memory of earlier rows, predict the next token."""

from dataclasses import replace
from typing import Any

from unmask import data, hide, predict, see, system, text, train
from unmask.backbone import TransformerXL
from unmask.recipe import Recipe, Stage

# `base` is the paper's network for enwik8: 12 layers, rows and memory of 512 characters. `large` is the one with 24
# layers, rows and memory of 768 characters. The paper has no smaller sizes.
SIZES = {
    "tiny": TransformerXL(
        layers=2, width=128, heads=2, head=64, feedforward=512, memory=128, shared_biases=True, dropout="auto"
    ),
    "mini": TransformerXL(
        layers=4, width=256, heads=4, head=64, feedforward=1024, memory=256, shared_biases=True, dropout="auto"
    ),
    "small": TransformerXL(layers=4, width=512, heads=8, head=64, feedforward=2048, shared_biases=True, dropout="auto"),
    "medium": TransformerXL(
        layers=8, width=512, heads=8, head=64, feedforward=2048, shared_biases=True, dropout="auto"
    ),
    "base": TransformerXL(layers=12, width=512, heads=8, head=64, feedforward=2048, shared_biases=True),
    "large": TransformerXL(
        layers=24, width=1024, heads=8, head=128, feedforward=3072, memory=768, length=768, dropout=0.15
    ),
}
PAPER = ("base", "large")  # the sizes that the paper has
RATES = {"tiny": 1e-3, "mini": 7e-4, "small": 5e-4, "medium": 3.5e-4, "base": 2.5e-4, "large": 2.5e-4}
WARMUP = {"tiny": 0.01, "mini": 0.01, "small": 0.01, "medium": 0.01, "base": 0.0, "large": 0.01}
LENGTHS = {"tiny": 128, "mini": 256, "small": 512, "medium": 512, "base": 512, "large": 768}
# The paper: 22 rows of 512 for base, 64 rows of 768 for large.
ROWS = {"tiny": 32, "mini": 32, "small": 32, "medium": 32, "base": 22, "large": 64}

# words: the vocabulary of WikiText-103, which is too large for one softmax; rare words have narrower vectors. The sizes are
# the same as for enwik8; the paper's network for WikiText-103 has 18 layers of width 1,024, rows and memory of 384 tokens.
# A smaller vocabulary needs lower cutoffs.
VARIANTS = ("paper", "words")


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen: dict[str, Any] = {
        "paper": {
            "tokenizer": text.Bytes(),
            "backbone": SIZES[size],
            "predict": predict.Tokens(tied=True, transform=False, bias=True),
        },
        "words": {
            "tokenizer": text.WholeWords(vocab=267_735),
            "backbone": replace(SIZES[size], cutoffs=(20_000, 40_000, 200_000)),
            "predict": predict.Adaptive(own=(0,)),
        },
    }[variant]
    return Recipe(
        name="transformer-xl",
        size=size,
        variant=variant,
        tokenizer=chosen["tokenizer"],
        layout="a [SEP] b [SEP]",
        arrange=data.ContinuingRows(),
        hide=hide.Next(),
        see=see.LeftToRight(),
        system=system.Single(backbone=chosen["backbone"]),
        predict={"tokens": chosen["predict"]},
        optimise=train.AdamW(rate=RATES[size], epsilon=1e-8, decay=0.0, clip=0.25, warmup=WARMUP[size], curve="cosine"),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=LENGTHS[size]),),
        shrink=size not in PAPER,
    )
