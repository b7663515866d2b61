"""ERNIE of Tsinghua (Zhang et al. 2019, arXiv:1905.07129): hide 15% of tokens and 20% of the links to entities, see everything, predict the tokens, the entities and whether B follows A.

Entities come from a knowledge graph: `unmask graph`, then `unmask prepare --graph`. The paper begins with the weights of
BERT: `--from` a run of bert, or an imported one.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Fusion, Learned, Transformer
from unmask.recipe import Recipe, Stage

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(
        layers=2, width=128, heads=2, feedforward=512, segments=2, knowledge=Fusion(), deviation=0.06, **_NEAR
    ),
    "mini": Transformer(
        layers=4, width=256, heads=4, feedforward=1024, segments=2, knowledge=Fusion(), deviation=0.042, **_NEAR
    ),
    "small": Transformer(
        layers=4, width=512, heads=8, feedforward=2048, segments=2, knowledge=Fusion(), deviation=0.03, **_NEAR
    ),
    "medium": Transformer(
        layers=8, width=512, heads=8, feedforward=2048, segments=2, knowledge=Fusion(), deviation=0.03, **_NEAR
    ),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, segments=2, knowledge=Fusion()),
}
PAPER = ("base",)  # the size that the paper has: 6 layers of text, 6 layers of fusion
# The paper trains at rate 5e-5 with 512 rows of 256 tokens, from the weights of BERT. The smaller sizes are as in bert.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 5e-5}
WARMUP = {"tiny": 0.05, "mini": 0.05, "small": 0.05, "medium": 0.05, "base": 0.01}
ROWS = {"tiny": 32, "mini": 64, "small": 128, "medium": 256, "base": 512}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"among": "text"},  # an entity is predicted among those of its text
    "code": {"among": "batch"},  # among those of the batch
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="ernie-thu",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=30_000, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.NextSentence(random=0.5, short=0.1),
        hide=(
            hide.Masked(units=hide.Tokens(), budget=0.15, replace=hide.Mask(mask=0.8, random=0.1)),
            hide.Links(wrong=0.05, unlinked=0.15),
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True), "entities": predict.Entities(among=VARIANTS[variant]["among"])},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=WARMUP[size]),
        schedule=(Stage(rows=ROWS[size], length=256),),
        shrink=size not in PAPER,
    )
