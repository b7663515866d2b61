"""DeBERTa (He et al. 2020, arXiv:2006.03654): hide 15% as runs of one to three tokens, see everything by content and by distance, predict them with absolute positions added last."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import NoPositions, Transformer
from unmask.backbone.disentangled import Disentangled
from unmask.backbone.mask_decoder import MaskDecoder
from unmask.recipe import Adapt, Recipe, Stage

_SHAPE: dict[str, Any] = {
    "attention": Disentangled(reach=512), "positions": NoPositions(), "decoder": MaskDecoder(steps=2), "epsilon": 1e-7,
    "initial": "normal",
}  # fmt: skip
# Sizes that no paper has: the embeddings start as word vectors (`start`), and the initial weights are wider. Then a short run learns
# (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, dropout="auto", deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, dropout="auto", deviation=0.042, **_SHAPE),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: rate 2e-4 and 2,048 rows of 512 tokens a step, 10k of 500k (base) and of 1M (large) steps of warmup. It does
# not have the smaller sizes; they have a higher rate and a smaller batch.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 2e-4, "large": 2e-4}
WARMUP = {"tiny": 0.05, "mini": 0.05, "small": 0.05, "medium": 0.05, "base": 0.02, "large": 0.01}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 2048, "large": 2048}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="deberta",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=50_265),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False, fill=True),
        hide=hide.Masked(
            units=hide.Spans(of=hide.Tokens(), lengths=hide.Listed(of=(1 / 3, 1 / 3, 1 / 3))),
            budget=0.15,
            replace=hide.Mask(mask=0.8, random=0.1),
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, epsilon=1e-7)},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=WARMUP[size]),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        adapt=Adapt(rate=2e-5, activation="gelu"),
        shrink=size not in PAPER,
    )
