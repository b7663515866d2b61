"""AWD-LSTM (Merity et al. 2017, arXiv:1708.02182): hide nothing, see the tokens before, predict the next token with an LSTM."""

from dataclasses import replace

from unmask import data, hide, predict, see, system, text, train
from unmask.backbone import LSTM
from unmask.recipe import Adapt, Recipe, Stage

# `base` is the paper's network. It has no smaller sizes.
SIZES = {
    "tiny": LSTM(layers=2, width=128, inner=256),
    "mini": LSTM(layers=2, width=200, inner=512),
    "small": LSTM(layers=3, width=256, inner=640),
    "medium": LSTM(layers=3, width=320, inner=896),
    "base": LSTM(layers=3, width=400, inner=1150),
}
PAPER = ("base",)  # the sizes that the paper has
ROWS = {"tiny": 32, "mini": 40, "small": 64, "medium": 64, "base": 80}  # the paper: 80 rows of about 70 words

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    return Recipe(
        name="awd-lstm",
        size=size,
        variant=variant,
        tokenizer=text.WholeWords(vocab=33_278),
        layout="a [SEP] b [SEP]",
        arrange=data.ContinuingRows(),
        hide=hide.Next(),
        see=see.LeftToRight(),
        system=system.Single(backbone=replace(SIZES[size], input_dropout=0.65)),
        predict={"tokens": predict.Tokens(tied=True, transform=False, bias=True)},
        optimise=train.AdamW(rate=4e-3, betas=(0.7, 0.99), decay=1.2e-6, clip=0.25),
        schedule=(Stage(rows=ROWS[size], length=70),),
        adapt=Adapt(rate=1e-3, epochs=3.0),
        shrink=size not in PAPER,
    )
