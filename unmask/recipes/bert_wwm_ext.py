"""BERT-wwm-ext (Cui et al. 2019, arXiv:1906.08101): hide 15% as whole words, see everything, predict them and whether B follows A.

BERT-wwm, trained longer and on more text (5.4 billion words), mostly in short rows.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, segments=2, deviation=0.06, **_NEAR),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, segments=2, deviation=0.042, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, segments=2, deviation=0.03, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, segments=2, deviation=0.03, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, segments=2),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, segments=2),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: 2,560 rows of 128 tokens a step at rate 1e-4 with LAMB, from trained weights. It does not have the smaller
# sizes; they have a higher rate and a smaller batch, so that a short budget from random weights has enough steps.
RATES = {"tiny": 4e-3, "mini": 4e-3, "small": 4e-3, "medium": 4e-3, "base": 1e-4, "large": 1e-4}
ROWS = {  # at 128 tokens, at 512
    "tiny": (64, 16), "mini": (128, 32), "small": (256, 64), "medium": (512, 128), "base": (2_560, 384), "large": (2_560, 384)
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"copies": None},
    "code": {"copies": 5},  # five masked versions of the text, made once
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    short, long = ROWS[size]
    return Recipe(
        name="bert-wwm-ext",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=21_128, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.NextSentence(random=0.5, short=0.1),
        hide=hide.Masked(
            units=hide.Words(),
            budget=0.15,
            replace=hide.Mask(mask=0.8, random=0.1),
            copies=VARIANTS[variant]["copies"],
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True)},
        optimise=train.LAMB(rate=RATES[size], decay=0.01, warmup=0.1),
        schedule=(
            Stage(share=1 / 1.4, rows=short, length=128),
            Stage(share=0.4 / 1.4, rows=long, length=512),
        ),  # 1M and 400k steps
        shrink=size not in PAPER,
    )
