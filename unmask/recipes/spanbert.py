"""SpanBERT (Joshi et al. 2019, arXiv:1907.10529): hide 15% as spans of words, see everything, predict them at their positions and from the two tokens around a span."""

from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Transformer
from unmask.recipe import Recipe, Stage

# Sizes that no paper has: half of the heads of the first layer start at the neighbours of a token, the embeddings start as word
# vectors (`start`), and the initial weights are wider. Then a short run learns (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
SIZES = {
    "tiny": Transformer(layers=2, width=128, heads=2, feedforward=512, initial="normal", deviation=0.06, **_NEAR),
    "mini": Transformer(layers=4, width=256, heads=4, feedforward=1024, initial="normal", deviation=0.042, **_NEAR),
    "small": Transformer(layers=4, width=512, heads=8, feedforward=2048, initial="normal", deviation=0.03, **_NEAR),
    "medium": Transformer(layers=8, width=512, heads=8, feedforward=2048, initial="normal", deviation=0.03, **_NEAR),
    "base": Transformer(layers=12, width=768, heads=12, feedforward=3072, initial="normal"),
    "large": Transformer(layers=24, width=1024, heads=16, feedforward=4096, initial="normal"),
}
PAPER = ("base", "large")  # the sizes that the paper has
# The paper trains large at rate 1e-4 with 256 rows of 512 tokens a step, 10k of 2.4M steps of warmup.
# It does not have the smaller sizes; they have a higher rate. At BERT's 7e-4, a short run of size small learned nothing.
RATES = {"tiny": 1e-3, "mini": 5e-4, "small": 3e-4, "medium": 3e-4, "base": 1e-4, "large": 1e-4}
WARMUP = {"tiny": 0.1, "mini": 0.1, "small": 0.1, "medium": 0.1, "base": 0.004, "large": 0.004}
ROWS = {"tiny": 16, "mini": 32, "small": 64, "medium": 128, "base": 256, "large": 256}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"stop": 0.2, "boundary": 1.0, "decay": 0.1},
    "code": {
        "stop": 0.3,
        "boundary": 0.0,
        "decay": 0.01,
    },  # the defaults of the released code; its published command sets 0.2, 1 and 0.01
}


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen = VARIANTS[variant]
    spans = hide.Spans(of=hide.Words(), lengths=hide.Geometric(stop=chosen["stop"], most=10))
    return Recipe(
        name="spanbert",
        size=size,
        variant=variant,
        family="bert",
        tokenizer=text.WordPiece(vocab=28_996, lowercase=False),
        layout="[CLS] a [SEP] b [SEP]",
        arrange=data.Blocks(cross=False),
        hide=hide.Masked(
            units=spans, budget=0.15, replace=hide.Mask(mask=0.8, random=0.1, draw="span", random_from="row")
        ),
        see=see.Everything(),
        system=system.Single(backbone=SIZES[size]),
        start=None if size in PAPER else vectors.FromCounts(),
        predict={"tokens": predict.Tokens(tied=True), "boundary": predict.SpanBoundary(places=20, width=200)},
        optimise=train.AdamW(rate=RATES[size], epsilon=1e-8, decay=chosen["decay"], warmup=WARMUP[size]),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=512, weights={"boundary": chosen["boundary"]}),),
        shrink=size not in PAPER,
    )
