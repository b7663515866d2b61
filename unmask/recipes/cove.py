"""CoVe (McCann et al. 2017, arXiv:1708.00107): hide the second of two texts, see the whole first text, predict the second with an LSTM and attention.

It learns from pairs, such as a sentence and its translation. Its encoder reads fixed word vectors, and is all that tasks keep: a word
becomes [vector; CoVe]. The vectors are a file: pass --set start.file=v.txt (see docs/vectors.md).
"""

from dataclasses import replace
from typing import Any

from unmask import data, hide, predict, see, system, text, train, vectors
from unmask.backbone import AttentiveLSTM
from unmask.recipe import Adapt, Recipe, Stage

# With the initial weights of base, the translator of size tiny stays on the plateau of word frequencies for hundreds of steps; with these it
# leaves it in the first hundred (docs/results.md, "Why a small LSTM did not learn to translate"). The other sizes have the same start.
_START: dict[str, Any] = {"initial_embedding": 1.0, "deviation": 0.1}
SIZES = {
    "tiny": AttentiveLSTM(layers=1, width=256, embedding=128, **_START),
    "mini": AttentiveLSTM(layers=2, width=256, embedding=200, **_START),
    "small": AttentiveLSTM(layers=2, width=400, embedding=300, **_START),
    "base": AttentiveLSTM(layers=2, width=600, embedding=300),
}
PAPER = ("base",)  # the size that the paper has
# The paper trains with plain gradient descent; its rate of 1 falls by half in each epoch after the held-out loss has risen. The other
# sizes and variants have Adam, which learns much faster in a short budget.
ROWS = {"tiny": 32, "mini": 32, "small": 64, "base": 64}
RATES = {"tiny": 4e-3, "mini": 4e-3, "small": 1e-3, "base": 1e-3}
# paper: fixed word vectors. translator: the same network with trained embeddings of pieces of words, as a translator to compare
# with the recipe transformer.
# With --set system.backbone.when=before --set system.backbone.score=Concat its attention is that of Bahdanau et al. 2014.
VARIANTS = ("paper", "translator")


def recipe(size: str = "base", variant: str = "paper") -> Recipe:
    words: dict[str, Any] = {
        "tokenizer": text.WholeWords(vocab=50_000, split="words"),
        "start": vectors.FromVectors(zeros=True),
    }
    chosen: dict[str, Any] = {
        "paper": words | {"backbone": {"fixed": True, "joined": True}},
        "translator": {"tokenizer": text.BPE(vocab=37_000), "start": None, "backbone": {}},
    }[variant]
    slow = variant == "paper" and size in PAPER
    return Recipe(
        name="cove",
        size=size,
        variant=variant,
        tokenizer=chosen["tokenizer"],
        layout="a [SEP] b [SEP]",
        arrange=data.SourceTarget(alone=True),
        hide=hide.WriteSecond(halves=True),
        see=see.Everything(),
        system=system.Single(backbone=replace(SIZES[size], **chosen["backbone"])),
        predict={"tokens": predict.Tokens(tied=False, transform=False, bias=True)},
        optimise=train.Momentum(rate=1.0, momentum=0.0, decay=0.0, clip=5.0)
        if slow
        else train.AdamW(rate=RATES[size], decay=0.0, clip=5.0, warmup=0.02),
        schedule=(Stage(rows=ROWS[size], length=128),),
        start=chosen["start"],
        adapt=Adapt(rate=1e-3, epochs=5.0),
        shrink=size not in PAPER,
    )
