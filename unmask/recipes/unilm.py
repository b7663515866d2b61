"""UniLM (Dong et al. 2019, arXiv:1905.03197): hide 15% of tokens, see everything, a prefix, only the left or only the right, predict them and whether B follows A."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage, Track

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, segments=6, deviation=0.06, **_NEAR),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, segments=6, deviation=0.042, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, segments=6, deviation=0.03, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, segments=6, deviation=0.03, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, segments=6),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, segments=6),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper continues from BERT-large (`--from RUN`) at rate 3e-5, with 330 rows of 512 tokens a step and 40k of 770k steps
# of warmup. Smaller sizes start from random weights.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 3e-5, "large": 3e-5}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 330, "large": 330}
VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="unilm",
        size=size,
        variant=variant,
        tokenizer=text.WordPiece(vocab=28_996, lowercase=False),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.NextSentence(random=0.5, short=0.1),
        hide=hide.Masked(
            units=hide.Spans(of=hide.Tokens(), lengths=hide.Listed(of=(0.8, 0.1, 0.1))),
            budget=0.15,
            replace=hide.Mask(mask=0.8, random=0.1),
        ),
        see=see.Everything(),
        # A third of the rows see everything; the sentence task is trained only there. Each view has its own segments.
        tracks={
            "prefix": Track(share=1 / 3, see=see.Prefix(), segments=(4, 5), predict=("tokens",)),
            "left": Track(share=1 / 6, see=see.LeftToRight(), segments=(2, 2), predict=("tokens",)),
            "right": Track(share=1 / 6, see=see.RightToLeft(), segments=(3, 3), predict=("tokens",)),
        },
        writes_with="prefix",
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True)},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=0.05),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        shrink=size not in PAPER,
    )
