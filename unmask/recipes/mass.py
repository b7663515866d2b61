"""MASS (Song et al. 2019, arXiv:1905.02450): hide one window with half of the tokens, see everything else, predict the window with a decoder."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import EncoderDecoder, Learned
from unmask.recipe import Adapt, Recipe, Stage

_SHAPE: dict[str, Any] = {"length": 512, "epsilon": 1e-12}
# Sizes that no paper has: half of the heads of the first layers start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": EncoderDecoder(
        layers=2, decoder_layers=2, width=128, heads=2, feedforward=512, deviation=0.06, **_SHAPE, **_NEAR
    ),
    "mini": EncoderDecoder(
        layers=2, decoder_layers=2, width=256, heads=4, feedforward=1024, deviation=0.042, **_SHAPE, **_NEAR
    ),
    "small": EncoderDecoder(
        layers=3, decoder_layers=3, width=512, heads=8, feedforward=2048, deviation=0.03, **_SHAPE, **_NEAR
    ),
    "medium": EncoderDecoder(
        layers=4, decoder_layers=4, width=512, heads=8, feedforward=2048, deviation=0.03, **_SHAPE, **_NEAR
    ),
    "base": EncoderDecoder(layers=6, decoder_layers=6, width=1024, heads=8, feedforward=4096, **_SHAPE),
}
PAPER = ("base",)  # the size that the paper has
# The paper: rate 1e-4, about 3,000 tokens a step on each of four GPUs. Its rows are single sentences; here they are blocks of
# sentences of one document. The smaller sizes have a higher rate and a smaller batch.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 48}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"start": 0.0, "end": 0.0},
    "code": {"start": 0.2, "end": 0.2},  # the released code: more windows at the start and at the end of a text
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="mass",
        size=size,
        variant=variant,
        tokenizer=text.BPE(vocab=60_000),
        layout="[CLS] a [SEP] [SEP] b [SEP]",
        arrange=data.Blocks(cross=False),
        hide=hide.Window(budget=0.5, replace=hide.Mask(mask=0.8, random=0.1), **VARIANTS[variant]),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=True)},
        optimise=train.AdamW(rate=RATES[size], betas=(0.9, 0.98), decay=0.0, warmup=0.05, curve="inverse_sqrt"),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=256),),
        adapt=Adapt(rate=1e-4, warmup=0.06, epochs=5.0, decay=0.0),
        shrink=size not in PAPER,
    )
