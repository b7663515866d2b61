"""Write: a second text after the first, with a masked model that sees the second from left to right (UniLM).

A [MASK] stands where the next token goes; what the model puts there takes its place, until it ends the text."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unmask.batch import Batch
from unmask.data.arrange import ROLES, special_ids
from unmask.errors import require
from unmask.infer.generate import Sampling, stream
from unmask.infer.model import Model
from unmask.predict import Tokens
from unmask.text import layout as layouts


def write(
    model: Model, source: str, *, tokens: int = 50, sampling: Sampling | None = None, seed: int = 0
) -> Iterator[str]:
    """Each new piece of the second text as it is drawn; a source that is too long is cut at its end, and counted."""
    require(tokens >= 1, f"tokens must be 1 or more, got {tokens}")
    head = model.head(Tokens, "write")
    second = model.recipe.see.writes == "second"  # type: ignore[attr-defined]
    require(second, f"{model.folder} cannot write a second text: adapt it first with 'unmask adapt --task write'")
    mask, first = model.tokenizer.role("mask"), _first(model, source, tokens)

    def scores(written: list[int]) -> Tensor:
        batch = _row(first, [*written, mask]).to(model.device)
        return head.decode(model.system.look(batch), batch)[0, -1]  # type: ignore[no-any-return, operator]

    yield from stream(model, scores, [], tokens=tokens, sampling=sampling or Sampling(), seed=seed)


def _first(model: Model, source: str, tokens: int) -> list[int]:
    """The tokens up to where the second text begins."""
    layout = model.recipe.layout
    names = [item.name for item in layouts.items(layout, 2)]
    before = names[: names.index("b")]
    specials = dict(zip(ROLES, special_ids(model.tokenizer, layout), strict=True))
    room = model.length - tokens - len(names)
    require(
        room >= 1, f"{tokens} new tokens leave no room for the source in {model.length}: ask for fewer with --tokens"
    )
    ids = model.tokenizer.encode(source)
    require(bool(ids), "the source text is empty")
    if len(ids) > room:
        model.notes[f"sources longer than {room} tokens, cut"] += 1
    return [i for name in before for i in (ids[:room] if name == "a" else [specials[name]])]


def _row(first: list[int], second: list[int]) -> Batch:
    ids = torch.tensor([first + second])
    places = torch.arange(ids.shape[1])[None]
    one = torch.zeros(1, dtype=torch.long)
    return Batch(
        ids=ids, word=places, sentence=torch.zeros_like(ids), example=torch.zeros_like(ids),
        segment=(places >= len(first)).long(), position=places, row=one, visit=one, summary=one, label=one,
        counted=torch.ones(1), mode=one + 1,  # the view of a prefix, where there are several
    )  # fmt: skip
