"""ModernBERT (Warner et al. 2024, arXiv:2412.13663): hide 30% of tokens, see everything in every third layer and a window in the others, predict them.

The network has rotary positions, gated feed-forward layers, norms before its layers, no biases, and a window of 128 tokens
in two of three layers. Three things differ from the paper. Its optimiser is StableAdamW; here it is AdamW with clipped
gradients. The size of its steps grows at the start; here it is fixed. Its first stage has the theta 10,000 in all layers, and
only the stage of long rows has 160,000; here the theta is 160,000 from the start, as in the released weights.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Local, Rotary, Transformer
from unmask.recipe import Adapt, Recipe, Stage

_EPSILON = 1e-5
_SHAPE: dict[str, Any] = {
    "length": 8192, "norm": "pre", "embedding_norm": True, "first_norm": False, "biases": False, "gated": True,
    "positions": Rotary(theta=160_000.0, local_theta=10_000.0), "local": Local(window=128, every=3), "epsilon": _EPSILON,
    "dropout": 0.0, "scaled_init": True,
}  # fmt: skip
# Sizes that the paper does not have: the feed-forward layer is 2.5 times as wide as the others, about as in `large`. So a
# layer has about as many weights as in other recipes.
# Sizes that no paper has start with word vectors that are counted in the text (`start`), and tiny
# and mini with wider weights: a short run learns more (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=320, deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=640, deviation=0.042, **_SHAPE),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=1280, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=1280, **_SHAPE),
    "base": Transformer(layers=22, width=768, heads=12, feedforward=1152, **_SHAPE),
    "large": Transformer(layers=28, width=1024, heads=16, feedforward=2624, **_SHAPE),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The shapes, the theta, the window and the epsilon are those of transformers' configuration. The rates are the paper's: base
# 8e-4 for 1.7T tokens after 3B tokens of warmup; large 5e-4 for 900B after 2B, then 5e-5 for 800B, because its loss stopped
# falling (here a recipe has one rate). Not checked against the paper: betas 0.9 and 0.98, decay 1e-5, 4,608 and 4,928 rows of
# 1,024 tokens, then 72 and 77 rows of 8,192 tokens for 300B at rates of 3e-4 and 5e-5, and a fall of the rate in the last 50B
# tokens (here in the last tenth of the steps). The paper drops 10% of the outputs of attention; here nothing is dropped. It
# does not say what replaces hidden tokens; here it is as in BERT. Other sizes have the rates of RoBERTa.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 7e-4, "base": 8e-4, "large": 5e-4}
ROWS = {"tiny": 8, "mini": 16, "small": 32, "medium": 64, "base": 4608, "large": 4928}
LONG_ROWS = {"base": 72, "large": 77}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="modernbert",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=50_368, names="bert"),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False, fill=True),
        hide=hide.Masked(units=hide.Tokens(), budget=0.3, replace=hide.Mask(mask=0.8, random=0.1)),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform_bias=False, epsilon=_EPSILON)},
        optimise=train.AdamW(
            rate=RATES[size], betas=(0.9, 0.98), decay=1e-5, warmup=0.0007 if size in PAPER else 0.05, curve="trapezoid"
        ),
        schedule=(
            (
                Stage(share=0.42, rows=ROWS[size], length=1024),
                Stage(share=0.58, rows=LONG_ROWS[size], length=8192),
            )
            if size in PAPER
            else (Stage(share=1.0, rows=ROWS[size], length=1024),)
        ),
        adapt=Adapt(rate=5e-5, warmup=0.06, activation="gelu", pooler_bias=False, pooler_norm=_EPSILON),
        shrink=size not in PAPER,
    )
