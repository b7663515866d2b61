"""Fill: the most likely tokens at each [MASK] of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from unmask.axes import gives_of
from unmask.batch import Batch, Targets
from unmask.data.examples import Laid, Text
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import Noted, batches, laid_out

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
    id: int  # its number in the vocabulary


def fill(model: Model, text: str, *, top: int = 5) -> Noted[list[list[Guess]]]:
    """For each [MASK] of the text, from left to right, the most likely tokens."""
    found = fill_texts(model, [text], top=top)
    return Noted(found.value[0], found.notes)


def fill_texts(model: Model, texts: Sequence[str], *, top: int = 5) -> Noted[list[list[list[Guess]]]]:
    """The same for several texts, which are read together."""
    require(top >= 1, "top must be 1 or more, got {top}", top=top)
    model.head("token scores", "fill gaps")
    require(
        "decoder" not in gives_of(model.recipe.system),
        "{folder} predicts tokens with a decoder, which writes a whole text: give the text with its gaps to 'unmask generate', which "
        "writes it without gaps if the model was trained to do so (bart)",
        folder=model.folder,
    )
    gives = model.recipe.see.reading.gives
    why = next((words for fact, words in _WHY_NOT.items() if fact in gives), _NOT_BOTH)
    require("both sides" in gives, "{folder} {why}", folder=model.folder, why=why)
    rows, notes = laid_out(model, Laid([Text(with_gaps(model, text)) for text in texts]))
    gaps = (rows.ids == model.tokenizer.role("mask")).any(1)
    require(
        bool(gaps.all()),
        (
            "there is no [MASK] in {text!r:.60}, or it was cut off because the text is too long: write [MASK] "
            "where a word is missing"
        ),
        text=texts[int(gaps.argmin())],
    )
    found: dict[int, list[list[Guess]]] = {number: [] for number in range(len(texts))}
    model.system.eval()
    for chosen, batch in batches(model, rows):
        for row, guesses in _at_gaps(model, batch, top):
            found[int(chosen[row])].append(guesses)
    return Noted([found[number] for number in range(len(texts))], notes + model.random_weights("token scores"))


def with_gaps(model: Model, text: str) -> str:
    """The text with the mask token of the model's tokenizer in every gap."""
    return model.tokenizer.with_mask(_GAP.sub("[MASK]", text))


@torch.no_grad()
def _at_gaps(model: Model, batch: Batch, top: int) -> Iterator[tuple[int, list[Guess]]]:
    """For each gap of a batch, from left to right, its row and the most likely tokens."""
    head: Any = model.head("token scores", "fill gaps")
    places = (batch.ids.flatten() == model.tokenizer.role("mask")).nonzero()[:, 0]
    # in a permuted order (XLNet) all gaps come last: a gap does not see other gaps or its own [MASK]
    at = places - 1 if "one earlier" in gives_of(model.recipe.hide) else places
    weight = torch.ones(len(places), device=places.device)
    asked = Targets(places, at, batch.ids.flatten()[places], places, places, weight)
    batch = batch.replace(targets={"tokens": asked}, order=torch.zeros_like(batch.ids))
    scores = head.at_targets(model.system.look(batch), batch).float()
    scores[:, list(model.tokenizer.vocabulary.special)] = -float("inf")
    values, ids = scores.softmax(-1).topk(min(top, scores.shape[-1]))
    for place, row_ids, row in zip((places // batch.shape[1]).tolist(), ids.tolist(), values.tolist(), strict=True):
        yield place, [Guess(model.tokenizer.readable(i), p, i) for i, p in zip(row_ids, row, strict=True)]
