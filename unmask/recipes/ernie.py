"""ERNIE 1.0 (Sun et al. 2019, arXiv:1904.09223): hide 15% as tokens, phrases and entities, see everything, predict them and whether B follows A.

Phrases and entities come from lexicons: `unmask lexicon`, then `unmask prepare --lexicon`. The paper's sentence task needs
dialogues. This recipe has the sentence task of the released code instead.
"""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(
        layers=2, width=128, heads=2, feedforward=512, segments=2, activation="relu", deviation=0.06, **_NEAR
    ),
    "mini": Transformer(
        layers=4, width=256, heads=4, feedforward=1024, segments=2, activation="relu", deviation=0.042, **_NEAR
    ),
    "small": Transformer(
        layers=4, width=512, heads=8, feedforward=2048, segments=2, activation="relu", deviation=0.03, **_NEAR
    ),
    "medium": Transformer(
        layers=8, width=512, heads=8, feedforward=2048, segments=2, activation="relu", deviation=0.03, **_NEAR
    ),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, segments=2, activation="relu"),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, segments=2, activation="relu"),
}
PAPER = ("base", "large")  # the sizes that the paper has
# From the released commands: rate 1e-4, 8,192 tokens per step and device. The paper gives no numbers.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 1e-4, "large": 1e-4}
WARMUP = {"tiny": 0.05, "mini": 0.05, "small": 0.05, "medium": 0.05, "base": 0.01, "large": 0.01}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 256, "large": 256}

_TOKENS, _PHRASES, _ENTITIES, _ALL = (
    hide.Masked(
        units=hide.Levels(token=token, phrase=phrase, entity=entity),
        budget=0.15,
        replace=hide.Mask(mask=0.8, random=0.1),
    )
    for token, phrase, entity in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0))
)
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"stages": (_TOKENS, _PHRASES, _ENTITIES)},  # three stages, one for each level
    "mixed": {"stages": (_ALL,)},  # one stage: each row takes a random level
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    stages = VARIANTS[variant]["stages"]
    return Recipe(
        name="ernie",
        size=size,
        variant=variant,
        family="ernie",
        tokenizer=text.WordPiece(vocab=17_964, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.NextSentence(random=0.5, short=0.1),
        hide=stages[-1],
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True, activation="relu")},
        optimise=train.AdamW(rate=RATES[size], decay=0.01, warmup=WARMUP[size]),
        schedule=tuple(Stage(share=1 / len(stages), rows=ROWS[size], length=512, hide=stage) for stage in stages),
        shrink=size not in PAPER,
    )
