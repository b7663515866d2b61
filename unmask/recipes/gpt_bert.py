"""GPT-BERT (Charpentier and Samuel 2024, arXiv:2410.24159): hide 30% of tokens, falling to 15%, or the future, see everything or the left, predict each token from the position before it.

Half of the rows are masked, and half are read from left to right. A hidden token is predicted from the position before it,
so both halves train the same output in the same way. The model can fill in masked tokens, generate text, and score a text
by its likelihood. The paper uses a special network (gated attention, relative positions, a weight for each layer). The
Transformer here has norms before its layers and learned positions.
"""

from typing import Any

from unmask import curves, data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Transformer
from unmask.recipe import Recipe, Stage, Track

_SHAPE: dict[str, Any] = {"norm": "pre", "epsilon": 1e-5}
# Sizes that no paper has start with word vectors that are counted in the text (`start`), and tiny
# and mini with wider weights: a short run learns more (docs/results.md).
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, dropout="auto", deviation=0.06, **_SHAPE),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, dropout="auto", deviation=0.042, **_SHAPE),
    "small": Transformer(layers=12, width=384, heads=6, feedforward=1280, **_SHAPE),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, dropout="auto", **_SHAPE),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=2560, **_SHAPE),
}
PAPER = ("small", "base")  # the sizes that the paper has
# From the released commands: LAMB at rate 1e-2, 256 rows of 128 tokens; then 256 and 512 tokens with fewer rows. Other sizes
# have a smaller batch and the rate of the other recipes that use LAMB.
RATES = {"tiny": 4e-3, "mini": 4e-3, "small": 1e-2, "medium": 4e-3, "base": 1e-2}
ROWS = {"tiny": 64, "mini": 128, "small": 256, "medium": 256, "base": 256}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"left": 1 / 2},
    "masked": {
        "left": 1 / 16
    },  # the paper's competition entry: fifteen masked rows for each row that is read from left to right
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    rows = ROWS[size]
    return Recipe(
        name="gpt-bert",
        size=size,
        variant=variant,
        tokenizer=text.ByteBPE(vocab=16_384),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False, fill=True),
        hide=hide.Masked(
            units=hide.Spans(of=hide.Tokens(), lengths=hide.Listed(of=(1 / 3, 1 / 3, 1 / 3))),
            budget=curves.Linear(first=0.3, last=0.15),
            replace=hide.Mask(mask=0.8, random=0.1, draw="span"),
            at="before",
        ),
        see=see.Everything(),
        tracks={"left": Track(share=VARIANTS[variant]["left"], hide=hide.Next(), see=see.LeftToRight())},
        writes_with="left",
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, epsilon=1e-5)},
        optimise=train.LAMB(
            rate=RATES[size], betas=(0.9, 0.98), epsilon=1e-8, decay=0.1, clip=2.0, warmup=0.016, curve="cosine"
        ),
        schedule=(
            Stage(share=0.7, rows=rows, length=128),
            Stage(share=0.2, rows=rows // 2, length=256),
            Stage(share=0.1, rows=rows // 4, length=512),
        ),
        shrink=size not in PAPER,
    )
