"""Transformer (Vaswani et al. 2017, arXiv:1706.03762): hide the second of two texts, see the whole first text, predict the second with a decoder.

It learns from pairs, such as a sentence and its translation.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train
from unmask.backbone import EncoderDecoder, Sinusoidal
from unmask.recipe import Recipe, Stage

_SHAPE: dict[str, Any] = {
    "length": 512, "norm": "post", "embedding_norm": False, "scaled_embedding": True, "positions": Sinusoidal(),
    "activation": "relu",
}  # fmt: skip
# The paper does not give the initial weights; in the released code, embeddings have the deviation width^-0.5.
SIZES = {
    "tiny": EncoderDecoder(layers=2, decoder_layers=2, width=128, heads=2, feedforward=512, deviation=0.088, **_SHAPE),
    "mini": EncoderDecoder(
        layers=3, decoder_layers=3, width=256, heads=4, feedforward=1024, deviation=0.0625, **_SHAPE
    ),
    "small": EncoderDecoder(
        layers=4, decoder_layers=4, width=256, heads=4, feedforward=1024, deviation=0.0625, **_SHAPE
    ),
    "medium": EncoderDecoder(
        layers=6, decoder_layers=6, width=256, heads=4, feedforward=1024, deviation=0.0625, **_SHAPE
    ),
    "base": EncoderDecoder(layers=6, decoder_layers=6, width=512, heads=8, feedforward=2048, deviation=0.044, **_SHAPE),
    "large": EncoderDecoder(
        layers=6, decoder_layers=6, width=1024, heads=16, feedforward=4096, deviation=0.031, dropout=0.3, **_SHAPE
    ),
}
PAPER = ("base", "large")  # the sizes that the paper has; its "big" is large here
# The paper: the rate is width^-0.5 x min(step^-0.5, step x 4000^-1.5). Its highest value, after 4,000 steps of warmup, is
# (4000 x width)^-0.5; base trains for 100k steps, large for 300k. A step has about 25,000 tokens of sources and as many of
# targets: 100 rows of 512 tokens. Smaller sizes have a higher rate and a smaller batch.
RATES = {"tiny": 3e-3, "mini": 2e-3, "small": 2e-3, "medium": 1.5e-3, "base": 7e-4, "large": 4.9e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 32, "medium": 64, "base": 100, "large": 100}
WARMUP = {"base": 0.04, "large": 4000 / 300_000}
AVERAGED = {"large": 20}  # checkpoints, written every ten minutes; base and all others: 5
VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="transformer",
        size=size,
        variant=variant,
        tokenizer=text.BPE(vocab=37_000),
        layout="a [SEP] b [SEP]",
        arrange=data.SourceTarget(),
        hide=hide.WriteSecond(halves=True),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=False, smoothing=0.1)},
        optimise=train.AdamW(
            rate=RATES[size],
            betas=(0.9, 0.98),
            epsilon=1e-9,
            decay=0.0,
            clip=None,
            warmup=WARMUP.get(size, 0.1),
            curve="inverse_sqrt",
            average=train.Snapshots(count=AVERAGED.get(size, 5), share=0.05),
        ),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512 if size in PAPER else 256),),
        shrink=size not in PAPER,
    )
