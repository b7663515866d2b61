"""Fill: the most likely tokens at each [MASK] of a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from unmask.axes import gives_of
from unmask.batch import Targets
from unmask.data.examples import Laid, Text, batch_of
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import Noted, laid_out

# The ways to write a gap: [MASK], [mask], <mask>, and the same with full-width brackets and letters.
_GAP: Final = re.compile(r"[\[［【<＜]\s*(?:mask|ｍａｓｋ)\s*[\]］】>＞]", re.IGNORECASE)
_WHY_NOT = {
    "left": "sees only the tokens before a gap: continue a text with 'unmask generate'",
    "prefix": "was trained to write a second text: let it write with 'unmask generate'",
}
_NOT_BOTH = "does not see both sides of a gap: use a model whose tokens see all others"


@dataclass(frozen=True)
class Guess:
    """A token that may fill a gap."""

    token: str  # as text
    probability: float  # among all tokens of the vocabulary that are not special


def fill(model: Model, text: str, *, top: int = 5) -> Noted[list[list[Guess]]]:
    """For each [MASK] of the text, from left to right, the most likely tokens."""
    require(top >= 1, "top must be 1 or more, got {top}", top=top)
    head: Any = model.head("token scores", "fill gaps")
    gives = model.recipe.see.reading.gives
    why = next((words for fact, words in _WHY_NOT.items() if fact in gives), _NOT_BOTH)
    require("both sides" in gives, "{folder} {why}", folder=model.folder, why=why)
    rows, notes = laid_out(model, Laid([Text(model.tokenizer.with_mask(_GAP.sub("[MASK]", text)))]))
    batch = batch_of(rows, np.arange(1)).to(model.device)
    places = (batch.ids[0] == model.tokenizer.role("mask")).nonzero()[:, 0]
    require(
        len(places) > 0,
        (
            "there is no [MASK] in {text!r:.60}, or it was cut off because the text is too long: write [MASK] "
            "where a word is missing"
        ),
        text=text,
    )
    # in a permuted order (XLNet) all gaps come last: a gap does not see other gaps or its own [MASK]
    at = places - 1 if "one earlier" in gives_of(model.recipe.hide) else places
    asked = Targets(places, at, batch.ids[0, places], places, places, torch.ones(len(places), device=places.device))
    batch = batch.replace(targets={"tokens": asked}, order=torch.zeros_like(batch.ids))
    model.system.eval()
    with torch.no_grad():
        scores = head.at_targets(model.system.look(batch), batch).float()
    scores[:, list(model.tokenizer.vocabulary.special)] = -float("inf")
    values, ids = scores.softmax(-1).topk(min(top, scores.shape[-1]))
    guesses = [
        [Guess(model.tokenizer.readable(i), p) for i, p in zip(row_ids, row, strict=True)]
        for row_ids, row in zip(ids.tolist(), values.tolist(), strict=True)
    ]
    return Noted(guesses, notes + model.random_weights("token scores"))
