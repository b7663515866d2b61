"""ALBERT (Lan et al. 2019, arXiv:1909.11942): hide 15% as n-grams of words, see everything, predict them and whether A and B are in order.

All layers share one set of weights, and the embeddings are narrower than the layers. The paper's ablations are
`--set system.backbone.sharing=attention` (or feedforward, none) and `--set system.backbone.embedding=768`.
"""

from dataclasses import replace
from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage

_SHAPE: dict[str, Any] = {"embedding": 128, "sharing": "all", "segments": 2, "activation": "gelu_tanh"}
# Sizes that no paper has: half of the heads start at the neighbours of a token, the embeddings start as word vectors (`start`), and
# the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = _SHAPE | {"positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, deviation=0.06, **_NEAR | {"embedding": 64}),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, deviation=0.042, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, deviation=0.03, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, deviation=0.03, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE),
    "xlarge": Transformer(layers=24, width=2048, heads=32, feedforward=8192, **_SHAPE),  # released with 16 heads
    "xxlarge": Transformer(layers=12, width=4096, heads=64, feedforward=16384, **_SHAPE),
}
PAPER = ("base", "large", "xlarge", "xxlarge")  # the sizes that the paper has
# The paper: 4,096 rows of 512 tokens a step, rate 1.76e-3 after 3,125 of 125k steps, at all sizes. It does not
# have the smaller sizes; they have a higher rate and a smaller batch.
RATES = {"tiny": 4e-3, "mini": 4e-3, "small": 4e-3, "medium": 4e-3}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"tiny": "auto", "mini": "auto", "small": "auto", "medium": "auto"},  # dropout, where it is not 0.1
    "no-dropout": dict.fromkeys(SIZES, 0.0),  # the paper's final choice; the second release has it at all sizes
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="albert",
        size=size,
        variant=variant,
        family="albert",
        tokenizer=text.Unigram(vocab=30_000),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.SentenceOrder(swapped=0.5, short=0.1),
        hide=hide.Masked(
            units=hide.Spans(of=hide.Words(), lengths=hide.Harmonic(most=3)),
            budget=0.15,
            replace=hide.Mask(mask=0.8, random=0.1),
        ),
        see=see.Everything(),
        system=system.Single(backbone=replace(SIZES[size], dropout=VARIANTS[variant].get(size, 0.1))),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, activation="gelu_tanh")},
        optimise=train.LAMB(rate=RATES.get(size, 1.76e-3), decay=0.01, warmup=0.025),
        schedule=(Stage(share=1.0, rows=ROWS.get(size, 4_096), length=512),),
        shrink=size not in PAPER,
    )
