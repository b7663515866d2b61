"""Character Transformer (Al-Rfou 2018, arXiv:1808.04444): hide nothing, see the characters before, predict the next two characters.

Its characters are bytes. Prepare the text with `unmask prepare --whole`, which preserves every newline.
"""

from typing import Any

from unmask import curves, data, hide, predict, see, system, text, train
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage

# Two heads and ReLU follow the paper's text as far as it is known; they are not certain. The layers are those of the
# first Transformer, with the norm after the sum.
_SHAPE: dict[str, Any] = {
    "length": 512, "positions": Learned(every=True), "activation": "relu", "dropout": 0.0, "epsilon": 1e-6, "norm": "post"
}  # fmt: skip
# The paper has dropout in attention and after ReLU. Smaller sizes use the fast attention kernels, which have no dropout.
_PAPER: dict[str, Any] = _SHAPE | {"attention_dropout": 0.55, "activation_dropout": 0.55}
SIZES = {
    "tiny": Transformer(layers=4, width=128, heads=2, feedforward=512, activation_dropout=0.1, **_SHAPE),
    "mini": Transformer(layers=6, width=256, heads=2, feedforward=1024, activation_dropout=0.1, **_SHAPE),
    "small": Transformer(layers=8, width=256, heads=2, feedforward=1024, activation_dropout=0.1, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=2, feedforward=2048, activation_dropout=0.2, **_SHAPE),
    "base": Transformer(layers=12, width=512, heads=2, feedforward=2048, **_PAPER),  # T12
    "large": Transformer(layers=64, width=512, heads=2, feedforward=2048, **_PAPER),  # T64
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: momentum 0.99 at a fixed rate of 0.003, for four million steps. Smaller sizes are meant for short budgets, in
# which that optimiser hardly begins to learn. They use AdamW instead.
_ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "epsilon": 1e-8, "decay": 0.01, "warmup": 0.05, "curve": "cosine"}
OPTIMISE: dict[str, Any] = {
    "tiny": train.AdamW(rate=1e-3, **_ADAM),
    "mini": train.AdamW(rate=7e-4, **_ADAM),
    "small": train.AdamW(rate=6e-4, **_ADAM),
    "medium": train.AdamW(rate=4e-4, **_ADAM),
    "base": train.Momentum(rate=3e-3, momentum=0.99),
    "large": train.Momentum(rate=3e-3, momentum=0.99),
}

VARIANTS = ("paper",)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    # Every layer has its own output weights for each of the two characters. Otherwise the sizes would not have the 44M and
    # 235M parameters that the paper reports for training.
    nearest = predict.Tokens(tied=False, transform=False)
    second = predict.Tokens(tied=False, transform=False, target="ahead_2")
    return Recipe(
        name="char-transformer",
        size=size,
        variant=variant,
        tokenizer=text.Bytes(),
        layout="a [SEP] b [SEP]",
        arrange=data.FullRows(),
        hide=hide.Next(ahead=2),
        see=see.LeftToRight(),
        system=system.Single(backbone=SIZES[size]),
        predict={
            "tokens": nearest,
            "second": second,
            "layer": predict.EveryLayer(head=nearest),
            "layer_second": predict.EveryLayer(head=second),
        },
        optimise=OPTIMISE[size],
        schedule=(
            # layer l of n predicts until the share l/(2n) of training is done
            Stage(
                rows=16,
                length=512,
                weights={
                    "second": 0.5,
                    "layer": curves.InTurn(share=0.5),
                    "layer_second": curves.InTurn(share=0.5, value=0.5),
                },
            ),
        ),
        shrink=size not in PAPER,
    )
