"""GPT-2 (Radford et al. 2019): hide nothing, see the tokens before, predict the next token.

The paper is "Language Models are Unsupervised Multitask Learners".
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Transformer
from unmask.recipe import Recipe, Stage

_SHAPE: dict[str, Any] = {
    "length": 1024, "norm": "pre", "activation": "gelu_tanh", "epsilon": 1e-5, "initial": "normal", "scaled_init": True
}  # fmt: skip
# Sizes that no paper has start with word vectors that are counted in the text (`start`), and tiny
# and mini with wider weights: a short run learns more (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, dropout="auto", deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, dropout="auto", deviation=0.042, **_SHAPE),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, dropout="auto", **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, dropout="auto", **_SHAPE),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper gives a batch of 512 rows, and says that the rate was tuned by hand. These rates follow GPT-3's table.
RATES = {"tiny": 1.5e-3, "mini": 1e-3, "small": 1e-3, "medium": 7e-4, "base": 6e-4, "large": 3e-4}
ROWS = {"tiny": 8, "mini": 16, "small": 32, "medium": 64, "base": 512, "large": 512}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="gpt2",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=50_257),
        layout="a [SEP] b [SEP]",
        arrange=data.FullRows(),
        hide=hide.Next(),
        see=see.LeftToRight(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=False)},
        optimise=train.AdamW(rate=RATES[size], betas=(0.9, 0.95), epsilon=1e-8, decay=0.1, warmup=0.02, curve="cosine"),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=1024),),
        shrink=size not in PAPER,
    )
