"""BERT (Devlin et al. 2018, arXiv:1810.04805): hide 15% of tokens, see everything, predict them and whether B follows A."""

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
# The paper trains base and large at rate 1e-4 with 1% of warmup and 131,072 tokens a step. It does not have the smaller
# sizes; they have a higher rate and a smaller batch, so that a short budget has enough steps.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4, "large": 1e-4}
WARMUP = {"tiny": 0.05, "mini": 0.05, "small": 0.05, "medium": 0.05, "base": 0.01, "large": 0.01}
ROWS = {"tiny": 64, "mini": 128, "small": 256, "medium": 256, "base": 256, "large": 256}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"copies": None, "correct": True},
    "code": {
        "copies": 10,
        "correct": False,
    },  # ten masked versions of the text, made once; Adam without bias correction
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen = VARIANTS[variant]
    return Recipe(
        name="bert",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=30_000, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.NextSentence(random=0.5, short=0.1),
        hide=hide.Masked(
            units=hide.Tokens(), budget=0.15, replace=hide.Mask(mask=0.8, random=0.1), copies=chosen["copies"]
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True)},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=WARMUP[size], correct=chosen["correct"]),
        schedule=(Stage(share=0.9, rows=ROWS[size], length=128), Stage(share=0.1, rows=ROWS[size], length=512)),
        shrink=size not in PAPER,
    )
