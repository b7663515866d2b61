"""Write a second text after the first, with a masked model that sees the second text from left to right (UniLM).

In each step a [MASK] is added at the end, and the token that the model predicts there replaces it, until the end token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.axes import gives_of
from unmask.data.arrange import ROLES, special_ids
from unmask.errors import UserError, require
from unmask.infer.batches import left_padded
from unmask.infer.decode_text import pieces, whole
from unmask.infer.draw_token import Draft, addresses, draw, first_draft
from unmask.infer.likelihood import SCORES
from unmask.infer.model import Model
from unmask.infer.passes import Noted, together, tokens_at_once
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling
from unmask.text import layout as layouts


@dataclass(frozen=True)
class SecondText:
    """A text that was written after a source."""

    text: str  # without incomplete characters
    ids: tuple[int, ...]  # its tokens, without the end token
    ended: bool  # whether the model wrote the end token within the requested number of tokens


def write(
    model: Model, source: str, *, tokens: int = 50, sampling: Greedy | Sampling | None = None, seed: int = 0
) -> Noted[Iterator[str]]:
    """Yields each new piece of the second text when it is drawn. If the source is too long, its end is cut, with a note."""
    firsts, notes, how = _begun(model, [source], tokens, sampling)
    found = _drafts(model, [source], firsts, tokens, how, seed)
    return Noted(pieces(model.tokenizer, [], _first_text(found)), notes)


def write_all(
    model: Model, sources: Sequence[str], *, tokens: int, sampling: Decoding | None = None, seed: int = 0
) -> Noted[list[SecondText]]:
    """The second text of every source."""
    firsts, notes, how = _begun(model, sources, tokens, sampling)
    texts: dict[int, SecondText] = {}
    most = max(1, SCORES // model.tokenizer.vocabulary.size)
    lengths = [len(first) + tokens + 1 for first in firsts]
    for some in together(lengths, tokens=tokens_at_once(model), most=most):
        chosen = some.tolist()
        *_, last = _drafts(model, [sources[i] for i in chosen], [firsts[i] for i in chosen], tokens, how, seed)
        ids = last.written[:, : int(last.number)].tolist()
        texts |= {i: _text(model, row) for i, row in zip(chosen, ids, strict=True)}
    return Noted([texts[i] for i in range(len(sources))], notes)


def _begun(
    model: Model, sources: Sequence[str], tokens: int, sampling: Decoding | None
) -> tuple[list[list[int]], Counter[str], Greedy | Sampling]:
    """The tokens before each second text, the notes, and how tokens are drawn."""
    require(tokens >= 1, "tokens must be 1 or more, got {tokens}", tokens=tokens)
    model.head("token scores", "write")
    second = "prefix" in model.recipe.writes
    require(
        second,
        "{folder} cannot write a second text: adapt it first with 'unmask adapt --task write'",
        folder=model.folder,
    )
    how = sampling or Sampling()
    if isinstance(how, Beams):
        raise UserError(
            "{folder} writes a second text, which does not support beams: drop --beams", folder=model.folder
        )
    notes = model.random_weights("token scores")
    return [_first(model, source, tokens, notes) for source in sources], notes, how


def _drafts(
    model: Model, sources: Sequence[str], firsts: Sequence[list[int]], tokens: int, how: Greedy | Sampling, seed: int
) -> Iterator[Draft]:
    """The second texts after each token, until all have ended."""
    model.system.eval()
    address, draft = addresses(sources, 1, seed), None
    written: list[list[int]] = [[] for _ in firsts]
    for _ in range(tokens):
        scores = _scores(model, firsts, written)
        draft = draft or first_draft(None, scores, address, tokens, written, how.repetition_penalty)
        draft = draw(draft, scores, how, model.tokenizer.role("sep"))
        yield draft
        if not bool(draft.going):
            return
        written = draft.written[:, : int(draft.number)].tolist()


def _first_text(found: Iterator[Draft]) -> Iterator[int]:
    """The tokens of the first text, one by one, up to its end."""
    for draft in found:
        if bool(draft.ended[0]):
            return
        yield int(draft.last[0])


def _text(model: Model, ids: list[int]) -> SecondText:
    end = model.tokenizer.role("sep")
    kept = ids[: ids.index(end)] if end in ids else ids
    return SecondText(whole(model.tokenizer, [], kept), tuple(kept), end in ids)


@torch.no_grad()
def _scores(model: Model, firsts: Sequence[list[int]], written: Sequence[list[int]]) -> Tensor:
    """B V, the scores of the tokens at a [MASK] after the written tokens."""
    head: Any = model.head("token scores", "write")
    mask, pad = model.tokenizer.role("mask"), model.tokenizer.vocabulary.pad
    batch = left_padded([[*first, *new, mask] for first, new in zip(firsts, written, strict=True)], pad)
    second = batch.position >= torch.tensor([len(first) for first in firsts])[:, None]
    batch = batch.replace(segment=second.long()).to(model.device)
    place = -2 if "one earlier" in gives_of(model.recipe.hide) else -1  # the position that predicts the [MASK]
    scores: Tensor = head.decode(model.system.look(batch, model.recipe.writing), batch)[:, place].float()
    never = [i for i in model.tokenizer.vocabulary.special if i != model.tokenizer.role("sep")]
    return scores.index_fill(1, torch.tensor(never, device=scores.device), -float("inf"))


def _first(model: Model, source: str, tokens: int, notes: Counter[str]) -> list[int]:
    """The tokens before the second text. If the source is cut, the notes count it."""
    layout = model.recipe.layout
    names = [item.name for item in layouts.items(layout, 2)]
    before = names[: names.index("b")]
    specials = dict(zip(ROLES, special_ids(model.tokenizer, layout), strict=True))
    room = model.length - tokens - len(names)
    require(
        room >= 1,
        (
            "--tokens {tokens} leaves no room for the source, because the model reads {length} tokens in all: ask "
            "for fewer --tokens"
        ),
        tokens=tokens,
        length=model.length,
    )
    ids = model.tokenizer.encode(source)
    require(bool(ids), "the source text is empty: give a text")
    if len(ids) > room:
        notes[f"sources longer than {room} tokens, cut"] += 1
    return [i for name in before for i in (ids[:room] if name == "a" else [specials[name]])]
