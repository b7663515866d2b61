"""Write: a second text after the first, with a masked model that sees the second from left to right (UniLM).

A [MASK] stands where the next token goes; what the model puts there takes its place, until it ends the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from unmask.data.arrange import ROLES, special_ids
from unmask.errors import UserError, require
from unmask.infer.batches import left_padded
from unmask.infer.decode_text import pieces, whole
from unmask.infer.draw_token import addresses, draw, first_draft
from unmask.infer.model import Model
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling
from unmask.predict import Tokens
from unmask.text import layout as layouts


def write(
    model: Model, source: str, *, tokens: int = 50, sampling: Greedy | Sampling | None = None, seed: int = 0
) -> Iterator[str]:
    """Each new piece of the second text as it is drawn; a source that is too long is cut at its end, and counted."""
    yield from pieces(model.tokenizer, [], _drawn(model, source, tokens, sampling or Sampling(), seed))


def write_all(
    model: Model, sources: Sequence[str], tokens: int, sampling: Decoding | None, seed: int
) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Of every source the second text, its tokens, and whether it ended before it had as many as asked for."""
    for source in sources:
        ids = tuple(_drawn(model, source, tokens, sampling or Sampling(), seed))
        yield whole(model.tokenizer, [], ids), ids, len(ids) < tokens


def _drawn(model: Model, source: str, tokens: int, how: Decoding, seed: int) -> Iterator[int]:
    """The tokens of the second text, one by one, up to its end."""
    require(tokens >= 1, f"tokens must be 1 or more, got {tokens}")
    head = model.head(Tokens, "write")
    second = "prefix" in model.recipe.writes
    require(second, f"{model.folder} cannot write a second text: adapt it first with 'unmask adapt --task write'")
    if isinstance(how, Beams):
        raise UserError(f"{model.folder} writes a second text token by token, without beams: drop --beams")
    model.system.eval()
    first, address = _first(model, source, tokens), addresses([source], 1, seed)
    written: list[int] = []
    draft = None
    for _ in range(tokens):
        scores = _scores(model, head, first, written)
        draft = draft or first_draft(None, scores, address, tokens, [[]], how.repetition_penalty)
        draft = draw(draft, scores, how, model.tokenizer.role("sep"))
        if bool(draft.ended):
            return
        written.append(int(draft.last))
        yield written[-1]


@torch.no_grad()
def _scores(model: Model, head: Any, first: list[int], written: list[int]) -> Tensor:
    """1 V, what the model puts at a [MASK] after what was written."""
    batch = left_padded([[*first, *written, model.tokenizer.role("mask")]], model.tokenizer.vocabulary.pad)
    second = (batch.position >= len(first)).long()
    batch = batch.replace(segment=second).to(model.device)
    scores: Tensor = head.decode(model.system.look(batch, model.recipe.writing), batch)[:, -1].float()
    never = [i for i in model.tokenizer.vocabulary.special if i != model.tokenizer.role("sep")]
    return scores.index_fill(1, torch.tensor(never, device=scores.device), -float("inf"))


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
