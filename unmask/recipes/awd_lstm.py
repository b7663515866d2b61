"""AWD-LSTM (Merity et al. 2017, arXiv:1708.02182): hide nothing, see the tokens before, predict the next token with an LSTM."""

from dataclasses import replace
from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import LSTM
from unmask.backbone.lstm import DROPOUTS
from unmask.recipe import Adapt, Recipe, Stage

# `base` is the network of the paper and of ULMFiT. They have no smaller sizes.
# Sizes that no paper has start with word vectors that are counted in the text (`start`): a short run learns more (docs/results.md).
SIZES = {
    "tiny": LSTM(layers=2, width=128, inner=256),
    "mini": LSTM(layers=2, width=200, inner=512),
    "small": LSTM(layers=3, width=256, inner=640),
    "medium": LSTM(layers=3, width=320, inner=896),
    "base": LSTM(layers=3, width=400, inner=1150),
}
PAPER = ("base",)  # the sizes that the papers have
ROWS = {"tiny": 32, "mini": 40, "small": 64, "medium": 64, "base": 80}  # the paper: 80 rows of about 70 words

# The dropouts of the papers are for text that is read many times. Sizes that the papers do not have choose theirs by how
# often the text is read.
AUTOMATIC: dict[str, Any] = dict.fromkeys(DROPOUTS, "auto")

# paper: plain gradient descent at a high rate; when the held-out loss stops falling, the mean of all weights from then on.
# ulmfit: Howard and Ruder 2018, arXiv:1801.06146. Adam learns much faster, so this is the variant for short budgets.
VARIANTS = ("paper", "ulmfit")


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen: dict[str, Any] = {
        "paper": {
            "dropouts": {"input_dropout": 0.65, "embedding_dropout": 0.1},
            "optimise": train.Momentum(rate=30.0, momentum=0.0, decay=1.2e-6, clip=0.25, average=train.Triggered()),
        },
        "ulmfit": {
            "dropouts": {"input_dropout": 0.4, "embedding_dropout": 0.05},
            "optimise": train.AdamW(rate=4e-3, betas=(0.7, 0.99), decay=1.2e-6, clip=0.25),
        },
    }[variant]
    return Recipe(
        name="awd-lstm",
        size=size,
        variant=variant,
        tokenizer=text.WholeWords(vocab=33_278, split="words"),
        layout="a [SEP] b [SEP]",
        arrange=data.ContinuingRows(deviation=5.0, half=0.05),
        hide=hide.Next(),
        see=see.LeftToRight(),
        system=system.Single(backbone=replace(SIZES[size], **chosen["dropouts"] if size in PAPER else AUTOMATIC)),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={
            "tokens": predict.Tokens(tied=True, transform=False, bias=True),
            "large": predict.LargeVectors(),
            "fast": predict.FastVectors(),
        },
        optimise=chosen["optimise"],
        schedule=(Stage(rows=ROWS[size], length=70, weights={"large": 2.0, "fast": 1.0}),),
        adapt=Adapt(rate=1e-3, epochs=3.0),
        shrink=size not in PAPER,
    )
