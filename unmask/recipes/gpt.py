"""GPT (Radford et al. 2018): hide nothing, see the tokens before, predict the next token.

The paper is "Improving Language Understanding by Generative Pre-Training". It does not mark where a book begins and ends.
Here every document is between the start token and the extract token, so both are trained before the model is adapted.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Transformer
from unmask.recipe import Adapt, Recipe, Stage

_SHAPE: dict[str, Any] = {"embedding_norm": False, "activation": "gelu_tanh", "epsilon": 1e-5, "initial": "normal"}
# Sizes that no paper has: the embeddings start as word vectors (`start`), and the initial weights are wider. Then a short run learns
# (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, dropout="auto", deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, dropout="auto", deviation=0.042, **_SHAPE),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, dropout="auto", deviation=0.03, **_SHAPE),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE),
}
PAPER = ("base",)  # the sizes that the paper has
# The paper has only base: rate 2.5e-4, 64 rows a step, 100 epochs, 2,000 updates of warmup out of about a million (this
# number is from BERT's paper). The smaller sizes have a higher rate and a smaller batch, so that a short budget has
# enough steps.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 2.5e-4}
WARMUP = {"tiny": 0.05, "mini": 0.05, "small": 0.05, "medium": 0.05, "base": 0.002}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 64, "base": 64}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="gpt",
        size=size,
        variant=variant,
        tokenizer=text.WordBPE(vocab=40_482),  # 40,000 merges, 478 characters, four special tokens
        layout="[START] a [DELIMITER] b [EXTRACT]",
        arrange=data.FullRows(),
        hide=hide.Next(),
        see=see.LeftToRight(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=False)},
        optimise=train.AdamW(rate=RATES[size], epsilon=1e-8, decay=0.01, warmup=WARMUP[size], curve="cosine"),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512),),
        adapt=Adapt(rate=6.25e-5, warmup=0.002, language=0.5),
        shrink=size not in PAPER,
    )
