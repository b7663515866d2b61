"""XLNet (Yang et al. 2019, arXiv:1906.08237): hide the tokens at the end of a random order, see the tokens that come earlier in it, predict them with a second stream."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import TransformerXL
from unmask.recipe import Recipe, Stage

_SHAPE: dict[str, Any] = {
    "streams": 2, "segments": 3, "scaled_embeddings": False, "activation": "gelu", "epsilon": 1e-12, "memory": 384, "head": 64
}  # fmt: skip
# Sizes that no paper has: the embeddings start as word vectors (`start`), and the initial weights are wider. Then a short run learns
# (docs/results.md).
SIZES = {
    "tiny": TransformerXL(layers=2, width=128, heads=2, feedforward=512, dropout="auto", deviation=0.06, **_SHAPE),
    "mini": TransformerXL(layers=4, width=256, heads=4, feedforward=1024, dropout="auto", deviation=0.042, **_SHAPE),
    "small": TransformerXL(layers=4, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "medium": TransformerXL(layers=8, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "base": TransformerXL(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
    "large": TransformerXL(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The released code uses the tanh approximation of GELU; here it is exact, as in Hugging Face's XLNet.
# The paper gives numbers for large: a rate of 4e-4, 40k of 500k steps of warmup, 8,192 rows of 512 tokens.
RATES = {"tiny": 1e-3, "mini": 7e-4, "small": 5e-4, "medium": 4e-4, "base": 4e-4, "large": 4e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 2048, "large": 8192}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="xlnet",
        size=size,
        variant=variant,
        tokenizer=text.Unigram(vocab=32_000),
        layout="a [SEP] b [SEP] [CLS]",
        arrange=data.ContinuingPairs(reuse=0.5, random=0.5),
        # in each half of a row, the last sixth of the order: runs of one to five words, which are not replaced
        hide=hide.Masked(units=hide.Spans(lengths=hide.Harmonic(most=5)), budget=1 / 6, replace=hide.Keep()),
        see=see.Permuted(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=True)},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=0.08),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        shrink=size not in PAPER,
    )
