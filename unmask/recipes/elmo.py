"""ELMo (Peters et al. 2018, arXiv:1802.05365): hide nothing, see the left with one half and the right with the other, predict both neighbours."""

from dataclasses import replace

from unmask import data, hide, predict, see, system, text, train
from unmask.backbone import TwoWayLSTM
from unmask.recipe import Recipe, Stage

# `base` is the paper's network; `mini` and `small` have the sizes of the two smaller models that its authors released.
SIZES = {
    "tiny": TwoWayLSTM(width=128, cells=64, filters=(16, 16, 32), dropout="auto"),
    "mini": TwoWayLSTM(width=256, cells=1024, highways=1, dropout="auto"),
    "small": TwoWayLSTM(width=512, cells=2048, highways=1, dropout="auto"),
    "medium": TwoWayLSTM(width=512, cells=4096, dropout="auto"),
    "base": TwoWayLSTM(),
}
PAPER = ("base",)  # the sizes that the paper has
RATES = {"tiny": 3e-3, "mini": 2e-3, "small": 1e-3, "medium": 1e-3, "base": 1e-3}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 64, "base": 64}
# The released code compares a target with 8,192 of 793,471 words. Where a vocabulary is not larger, it is compared whole.
SAMPLES = {"tiny": 512, "mini": 1024, "small": 2048, "medium": 4096, "base": 8192}

# The paper says neither how its weights are updated nor whether cells have a limit. code: what its released code does, a limit
# of 3 and Adagrad. The limit makes training slow, because each step is computed by itself. Rows have the same length in both.
VARIANTS = ("paper", "code")
LIMITS = {"paper": None, "code": 3.0}
TIMES = (
    20  # the released code multiplies its loss by this; to divide what Adagrad starts from and its clipping is the same
)


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    optimise: dict[str, train.AdamW | train.Adagrad] = {
        "paper": train.AdamW(rate=RATES[size], betas=(0.7, 0.99), decay=0.0, clip=10.0, warmup=0.01),
        "code": train.Adagrad(rate=0.2, start=1.0 / TIMES**2, clip=10.0 / TIMES),
    }
    return Recipe(
        name="elmo",
        size=size,
        variant=variant,
        tokenizer=text.WholeWords(vocab=793_471, split="words", spelled=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(),
        hide=(hide.Next(), hide.Previous()),
        see=see.Everything(),
        system=system.Single(backbone=replace(SIZES[size], clip=LIMITS[variant])),
        predict={"neighbours": predict.Neighbours(samples=SAMPLES[size])},
        optimise=optimise[variant],
        schedule=(Stage(rows=ROWS[size], length=128),),
        shrink=size not in PAPER,
    )
