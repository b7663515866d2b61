"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): hide 15% of tokens and let a generator fill them in, see everything, predict which tokens were replaced."""

from dataclasses import replace
from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import Learned, Rotary, Transformer
from unmask.recipe import Adapt, Recipe, Stage

# The released code uses the default initialisation of its library, Glorot's, for the embedding projection and the output.
_SHAPE: dict[str, Any] = {"segments": 2, "initial_projection": "glorot"}
# Sizes that no paper has, and the variant `short` of small: half of the heads of the first layer start at the neighbours of a token, the
# embeddings start as word vectors (`start`), and the initial weights are wider. Then both networks learn in minutes (docs/results.md).
_NEAR: dict[str, Any] = {"dropout": "auto", "positions": Learned(start="neighbours")}
_DEVIATION = {64: 0.085, 128: 0.06, 256: 0.042, 512: 0.03}  # of initial weights, by width; other widths have 0.02
# The discriminator, and how many times smaller the generator is in width, heads and feed-forward width.
SIZES = {
    "tiny": (Transformer(layers=2, width=128, heads=2, feedforward=512, **_SHAPE), 2),
    "mini": (Transformer(layers=4, width=256, heads=4, feedforward=1024, embedding=128, **_SHAPE), 4),
    "small": (Transformer(layers=12, width=256, heads=4, feedforward=1024, embedding=128, **_SHAPE), 4),
    "medium": (Transformer(layers=8, width=512, heads=8, feedforward=2048, **_SHAPE), 4),
    "base": (Transformer(layers=12, width=768, heads=12, feedforward=3072, **_SHAPE), 3),
    "large": (Transformer(layers=24, width=1024, heads=16, feedforward=4096, **_SHAPE), 4),
}
PAPER = ("small", "base", "large")  # the sizes that the paper has
# The paper has small, base and large: batches of 128, 256 and 2,048 rows, rows of 128, 512 and 512 tokens, and for small
# 10k warmup steps out of a million. A short run needs a larger share of warmup: with less, the network collapses to one
# vector for all tokens. It also collapses at the higher rates that work for small sizes of other recipes. Even with this
# warmup, in a run of 7,000 steps of small on English text, the discriminator stayed collapsed for half of the run at the
# paper's rate of 5e-4; at 2e-4 it did not.
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 5e-4, "medium": 5e-4, "base": 2e-4, "large": 2e-4}
SHORT_RATES = {"small": 1e-3}  # of the variant `short`
WARMUP = {"tiny": 0.1, "mini": 0.1, "small": 0.1, "medium": 0.1, "base": 0.013, "large": 0.025}
ROWS = {"tiny": 64, "mini": 128, "small": 128, "medium": 128, "base": 256, "large": 2048}
LENGTH = {"tiny": 128, "mini": 128, "small": 128, "medium": 512, "base": 512, "large": 512}
BUDGET = {"large": 0.25}  # share of hidden tokens, if it is not 15%
# The paper's rates for fine-tuning are 3e-4, 1e-4 and 5e-5 for small, base and large; `Adapt` takes the rate at width 768.
# One linear layer predicts the label from the first token. The released code has a rate of 1e-4 for small too, and a
# weight decay of 0.01.
ADAPT_RATE = {"large": 5e-5 * 1024 / 768}
LAYER_DECAY = {"large": 0.9}
_REPLACED = {"replaced": predict.Replaced()}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"mask": 1.0, "predict": _REPLACED, "weights": {"replaced": 50.0}},
    "code": {
        "mask": 0.85,
        "correct": False,
        "predict": _REPLACED,
        "weights": {"replaced": 50.0},
    },  # 15% of the chosen tokens are not masked
    # the start of the sizes that no paper has, for `small`: the architecture is the same
    "short": {"mask": 1.0, "predict": _REPLACED, "weights": {"replaced": 50.0}, "near": True, "shrink": True},
    "learned": {"mask": 1.0, "learned": True, "predict": _REPLACED, "weights": {}},  # the loss weight is learned
    # the ablations of the paper
    "hidden-only": {
        "mask": 1.0,
        "predict": {"replaced": predict.Replaced(where="hidden")},
        "weights": {"replaced": 50.0},
    },
    "replace-mlm": {"mask": 1.0, "predict": {"original": predict.Tokens(tied=True)}, "weights": {}},
    "all-tokens": {"mask": 1.0, "predict": {"original": predict.AllTokens()}, "weights": {}},
    # for minutes of training: with learned positions and AdamW, the generator learns word frequencies for 30 million tokens or
    # more, or the discriminator collapses; with these choices both learned within five million (docs/results.md)
    "rotary": {
        "mask": 1.0,
        "predict": _REPLACED,
        "weights": {"replaced": 50.0},
        "near": False,
        "shape": {"positions": Rotary(), "dropout": "auto"},
        "discriminator_rate": 0.5,
        "optimise": train.Muon(rate=2e-3, decay=0.01, warmup=0.1),
        "shrink": True,
    },
}


def _deviation(width: int, near: bool) -> float:
    return _DEVIATION.get(width, 0.02) if near else 0.02


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    chosen, (backbone, part) = VARIANTS[variant], SIZES[size]
    near = chosen.get("near", size not in PAPER)
    shape = (_NEAR if near else {}) | chosen.get("shape", {})
    backbone = replace(backbone, deviation=_deviation(backbone.width, near), **shape)
    rate = SHORT_RATES.get(size, RATES[size]) if near else RATES[size]
    usual = train.AdamW(rate=rate, decay=0.01, warmup=WARMUP[size], correct=chosen.get("correct", True))
    generator = Transformer(
        layers=backbone.layers,
        width=backbone.width // part,
        heads=max(backbone.heads // part, 1 if size in PAPER else 2),
        feedforward=backbone.feedforward // part,
        initial_projection=backbone.initial_projection,
        deviation=_deviation(backbone.width // part, near),
        dropout=backbone.dropout,
    )
    return Recipe(
        name="electra",
        size=size,
        variant=variant,
        family="electra",
        tokenizer=text.WordPiece(vocab=30_522, lowercase=True),
        layout="[CLS] a [SEP] b [SEP]",
        # one text per example: the embedding of the second segment exists for tasks, and is not trained here
        arrange=data.Blocks(cross=False, fill=True),
        hide=hide.Masked(
            units=hide.Tokens(), budget=BUDGET.get(size, 0.15), replace=hide.Mask(mask=chosen["mask"], random=0.0)
        ),
        see=see.Everything(),
        system=system.GeneratorDiscriminator(
            backbone=backbone,
            generator=generator,
            learned=chosen.get("learned", False),
            discriminator_rate=chosen.get("discriminator_rate", 1.0),
        ),
        # the generator begins with tokens that are easy to find: if it knows how frequent tokens are, the discriminator learns later
        start=vectors.FromCounts(biases=False) if near else None,
        predict=chosen["predict"],
        optimise=chosen.get("optimise", usual),
        schedule=(Stage(share=1.0, rows=ROWS[size], length=LENGTH[size], weights=chosen["weights"]),),
        adapt=Adapt(
            rate=ADAPT_RATE.get(size, 1e-4),
            decay=0.0,
            layer_decay=LAYER_DECAY.get(size, 0.8),
            pooler=False,
            activation="gelu",
        ),
        shrink=chosen.get("shrink", size not in PAPER),
    )
