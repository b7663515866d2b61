"""BART (Lewis et al. 2019, arXiv:1910.13461): hide 30% of tokens in spans, each behind one mask, and the order of sentences, see everything, predict the whole text with a decoder."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import EncoderDecoder, Learned
from unmask.recipe import Adapt, Recipe, Stage

# Sizes that no paper has: half of the heads of the first layers start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": EncoderDecoder(layers=2, decoder_layers=2, width=128, heads=2, feedforward=512, deviation=0.06, **_NEAR),
    "mini": EncoderDecoder(layers=2, decoder_layers=2, width=256, heads=4, feedforward=1024, deviation=0.042, **_NEAR),
    "small": EncoderDecoder(layers=3, decoder_layers=3, width=512, heads=8, feedforward=2048, deviation=0.03, **_NEAR),
    "medium": EncoderDecoder(layers=4, decoder_layers=4, width=512, heads=8, feedforward=2048, deviation=0.03, **_NEAR),
    "base": EncoderDecoder(layers=6, decoder_layers=6, width=768, heads=12, feedforward=3072),
    "large": EncoderDecoder(layers=12, decoder_layers=12, width=1024, heads=16, feedforward=4096),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: 8,000 rows a step for 500k steps. The released command: rate 4e-4 after 10k steps, rows of 512 tokens.
# The paper does not have the smaller sizes; they have a higher rate and a smaller batch.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 4e-4, "large": 4e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 8000, "large": 8000}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"of": hide.Tokens(), "mean": 3.0, "replace": hide.Infill(empty=0.05)},
    # the released command: spans of whole words, slightly longer, and some random tokens instead of masks
    "code": {"of": hide.Words(), "mean": 3.5, "replace": hide.Infill(empty=0.03, random=0.1)},
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen = VARIANTS[variant]
    return Recipe(
        name="bart",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=50_265),
        layout="[CLS] a [SEP] [SEP] b [SEP]",
        arrange=data.Blocks(cross=False),
        hide=(
            hide.Rewrite(),
            hide.PermuteSentences(),
            hide.Masked(
                units=hide.Spans(of=chosen["of"], lengths=hide.Poisson(mean=chosen["mean"])),
                budget=0.3,
                replace=chosen["replace"],
                at="none",
            ),
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=False)},
        optimise=train.AdamW(rate=RATES[size], betas=(0.9, 0.98), decay=0.01, warmup=0.02, clip=0.1),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        adapt=Adapt(rate=1e-5, warmup=0.06, epochs=10.0),
        shrink=size not in PAPER,
    )
