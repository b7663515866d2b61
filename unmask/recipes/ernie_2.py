"""ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412): hide 15% as tokens, phrases and entities, see everything, predict them and the answers of up to six more tasks.

The tasks are tracks that take turns. `main` is knowledge masking. The sentence tasks hide tokens too, because the paper adds
their losses to those of the tokens. Phrases and entities come from lexicons: `unmask lexicon`, then `unmask prepare --lexicon`.
"""

from typing import Any

from unmask import data, hide, predict, see, stages, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Track

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, segments=2, tasks=7, deviation=0.06, **_NEAR),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, segments=2, tasks=7, deviation=0.042, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, segments=2, tasks=7, deviation=0.03, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, segments=2, tasks=7, deviation=0.03, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, segments=2, tasks=7),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, segments=2, tasks=7),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper: 5e-5 for English and 1.28e-4 for Chinese, 393,216 tokens in a step, 4,000 steps of warmup, beta2 0.98.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 5e-5, "large": 5e-5}
CHINESE = {"base": 1.28e-4, "large": 1.28e-4}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 768, "large": 768}

ENGLISH_TASKS = {
    "capital": Track(hide=hide.Nothing(), predict=(), own={"capital": predict.Tags(column="capital")}),
    "elsewhere": Track(
        arrange=data.Elsewhere(), hide=hide.Nothing(), predict=(), own={"elsewhere": predict.Tags(column="elsewhere")}
    ),
    "reorder": Track(arrange=data.Reordered(pieces=3)),
    "distance": Track(arrange=data.Distance()),
    "discourse": Track(arrange=data.Discourse(language="en")),
    "title": Track(arrange=data.TitleRelevance()),
}
CHINESE_TASKS = ENGLISH_TASKS | {"discourse": Track(arrange=data.Discourse(language="zh"))}
ALL = ("main", *ENGLISH_TASKS)
WITHOUT_CAPITALS = tuple(name for name in ALL if name != "capital")  # Chinese has none
_ENGLISH: dict[str, Any] = {"tasks": ENGLISH_TASKS, "order": ALL, "vocab": 30_000, "rates": RATES}
_CHINESE: dict[str, Any] = {
    "tasks": CHINESE_TASKS, "order": WITHOUT_CAPITALS, "vocab": 17_964, "rates": RATES | CHINESE
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": _ENGLISH | {"stages": stages.continual},
    "sequential": _ENGLISH | {"stages": stages.sequential},
    "joint": _ENGLISH | {"stages": stages.joint},
    "chinese": _CHINESE | {"stages": stages.continual},
    "chinese-sequential": _CHINESE | {"stages": stages.sequential},
    "chinese-joint": _CHINESE | {"stages": stages.joint},
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen = VARIANTS[variant]
    return Recipe(
        name="ernie-2",
        size=size,
        variant=variant,
        family="ernie",
        tokenizer=text.WordPiece(vocab=chosen["vocab"], lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False),
        hide=hide.Masked(
            units=hide.Levels(token=1.0, phrase=1.0, entity=1.0), budget=0.15, replace=hide.Mask(mask=0.8, random=0.1)
        ),
        see=see.Everything(),
        tracks=chosen["tasks"],
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True)},
        optimise=train.AdamW(rate=chosen["rates"][size], betas=(0.9, 0.98), decay=0.01, warmup=0.05),
        schedule=chosen["stages"](chosen["order"], rows=ROWS[size], length=512),
        shrink=size not in PAPER,
    )
