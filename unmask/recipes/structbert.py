"""StructBERT (Wang et al. 2019, arXiv:1908.04577): hide 15% of tokens and the order of 5% more, see everything, predict both and whether B follows A, precedes A or neither."""

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
# The paper: rate 1e-4, a tenth of the steps are warmup. Its batch size is not known here; this is BERT's.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4, "large": 1e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 256, "large": 256}
VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="structbert",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=30_000, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.ThreeWay(previous=1 / 3, random=1 / 3, short=0.1),
        hide=(
            hide.Masked(units=hide.Tokens(), budget=0.15, replace=hide.Mask(mask=0.8, random=0.1)),
            hide.Masked(
                units=hide.Runs(size=3), budget=0.05, replace=hide.Shuffle()
            ),  # from the tokens that are not masked
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True)},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=0.1),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        shrink=size not in PAPER,
    )
