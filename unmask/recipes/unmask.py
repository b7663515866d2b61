"""Unmask (this project, 2026): hide 30% of tokens, or the future, see everything or the left, predict the hidden tokens or the next one.

Half of the rows are masked, and half are read from left to right. The network is ModernBERT's, so that Hugging Face loads
what is exported: rotary positions, gated feed-forward layers, norms before its layers, no biases, and a window in two of
three layers. Muon trains its matrices. docs/results.md has what each choice is worth, and docs/record.md what they reach
together in ten minutes.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Local, Rotary, Transformer
from unmask.recipe import Adapt, Recipe, Stage, Track

_EPSILON = 1e-5
_SHAPE: dict[str, Any] = {
    "length": 1024, "norm": "pre", "embedding_norm": True, "first_norm": False, "biases": False, "gated": True,
    "positions": Rotary(theta=160_000.0, local_theta=10_000.0), "local": Local(window=128, every=3), "epsilon": _EPSILON,
    "dropout": "auto", "scaled_init": True,
}  # fmt: skip
# The embeddings start as word vectors that are counted in the text (`start`), and tiny
# and mini with wider weights: a short run learns more (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=320, deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=640, deviation=0.042, **_SHAPE),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=1280, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=1280, **_SHAPE),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=1920, **_SHAPE),
}
RATES = {"tiny": 2e-3, "mini": 2e-3, "small": 2e-3, "medium": 2e-3, "base": 1e-3}
ROWS = {"tiny": 8, "mini": 16, "small": 32, "medium": 64, "base": 64}  # of 256 tokens
VARIANTS = ("paper", "masked")  # masked: no row is read from left to right
_LEFT = {"left": Track(share=0.5, hide=hide.Next(), see=see.LeftToRight())}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="unmask",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=16_000),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False, fill=True),
        hide=hide.Masked(units=hide.Tokens(), budget=0.3, replace=hide.Mask(mask=0.8, random=0.1)),
        see=see.Everything(),
        tracks=_LEFT if variant == "paper" else {},
        writes_with="left" if variant == "paper" else None,
        system=system.Single(backbone=SIZES[size]),
        start=vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform_bias=False, epsilon=_EPSILON)},
        optimise=train.Muon(rate=RATES[size], betas=(0.9, 0.98), decay=0.1, warmup=0.05),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=256),),
        adapt=Adapt(rate=5e-5, warmup=0.06, activation="gelu", pooler_bias=False, pooler_norm=_EPSILON),
        shrink=True,
    )
