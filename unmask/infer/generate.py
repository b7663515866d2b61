"""Generate: continue texts, or write second texts from sources, token by token.

The network has a cache of the tokens it has read, so a step reads only one token. If a text becomes longer than the context,
its last tokens (half a context) are read again into a new cache, and the tokens before them are forgotten. Every random draw
depends only on the seed, the prompt, the number of the sample and the step, so a prompt gives the same text alone and among
other prompts. On a GPU a step is recorded and replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from unmask.errors import require
from unmask.infer.decode_text import pieces, whole
from unmask.infer.draw_token import addresses
from unmask.infer.generation_loop import TokenReader, drafts, last, reader_of, searches
from unmask.infer.likelihood import SCORES
from unmask.infer.model import Model
from unmask.infer.passes import Noted, together
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling


@dataclass(frozen=True)
class Generated:
    """A prompt and its continuation, or a source and the text that was written from it."""

    prompt: str  # the prompt or source as the user gave it
    sample: int  # the number of this text among the texts of the prompt, counted from 0; with beams, 0 is the best
    text: str  # the prompt and the text after it, or only the text written from a source; without incomplete characters
    ids: tuple[int, ...]  # the new tokens, without the end token
    ended: bool  # whether the model wrote the end token within the requested number of tokens


def generate(
    model: Model, prompts: Sequence[str], *, tokens: int = 50, sampling: Decoding | None = None, seed: int = 0,
    samples: int = 1, cut_left: bool = False, cached: bool = True,
) -> Noted[list[Generated]]:  # fmt: skip
    """For every prompt or source, in order, `samples` texts with at most `tokens` new tokens each.

    `cut_left`: if a prompt is longer than the context, only its end is read. `cached=False` reads the whole text again for
    every token; this is slower and is meant for comparison."""
    require(not isinstance(prompts, str), "prompts must be a list of texts, got one text: write [prompt]")
    how, reader = sampling or Sampling(), reader_of(model, cached)
    _check(how, tokens, samples)
    texts, notes = _encoded(reader, prompts, tokens, cut_left)
    copies = how.beams if isinstance(how, Beams) else samples
    lengths = [min(len(text) + tokens, model.length) for text in texts]
    found: dict[int, list[Generated]] = {}
    for some in together(lengths, rows=copies, most=max(1, SCORES // (copies * model.tokenizer.vocabulary.size))):
        chosen = some.tolist()
        written = _written(reader, [texts[i] for i in chosen], [prompts[i] for i in chosen], how, tokens, seed, samples)
        for number, several in zip(chosen, written, strict=True):
            found[number] = [_result(reader, prompts[number], i, *one) for i, one in enumerate(several)]
    return Noted([one for number in range(len(prompts)) for one in found[number]], notes)


def stream(
    model: Model, prompt: str, *, tokens: int = 50, sampling: Greedy | Sampling | None = None, seed: int = 0,
    cut_left: bool = False, cached: bool = True,
) -> Noted[Iterator[str]]:  # fmt: skip
    """Yields the prompt, if it is continued, then each new piece of text when it is drawn. Together they are the first
    sample of `generate`."""
    how, reader = sampling or Sampling(), reader_of(model, cached)
    require(not isinstance(how, Beams), "stream cannot use beams, because they are compared at the end: use generate")
    _check(how, tokens, 1)
    texts, notes = _encoded(reader, [prompt], tokens, cut_left)
    before = _kept(reader, prompt)
    written = drafts(reader, texts, addresses([prompt], 1, seed), how, tokens)
    new = pieces(model.tokenizer, before, _until(reader.end, (int(draft.last[0]) for draft in written)))
    return Noted(chain([model.tokenizer.decode(before)] if before else [], new), notes)


def _check(how: Decoding, tokens: int, samples: int) -> None:
    require(tokens >= 1, "tokens must be 1 or more, got {tokens}", tokens=tokens)
    require(samples >= 1, "samples must be 1 or more, got {samples}", samples=samples)
    require(
        how.least <= tokens,
        "--min-tokens {least} is more than --tokens {tokens}: ask for more --tokens or fewer --min-tokens",
        least=how.least,
        tokens=tokens,
    )
    require(
        samples == 1 or not isinstance(how, Greedy),
        "--greedy gives one text per prompt, got --samples {samples}: drop one of the two options",
        samples=samples,
    )
    require(
        not isinstance(how, Beams) or samples <= how.beams,
        "--samples {samples} is more than --beams {getattr}: ask for more --beams or fewer --samples",
        samples=samples,
        getattr=getattr(how, "beams", 0),
    )


def _encoded(
    reader: TokenReader, prompts: Sequence[str], tokens: int, cut_left: bool
) -> tuple[list[list[int]], Counter[str]]:
    """The tokens that are read before each new text, and the notes."""
    notes = reader.model.random_weights("token scores")
    if not reader.second:
        return [_prompt(reader, prompt, cut_left, notes) for prompt in prompts], notes
    require(
        not cut_left,
        "--cut-left is for a prompt that is continued, but {folder} writes from a source, whose end is cut: leave it out",
        folder=reader.model.folder,
    )
    return [_source(reader, prompt, tokens, notes) for prompt in prompts], notes


def _prompt(reader: TokenReader, prompt: str, cut_left: bool, notes: Counter[str]) -> list[int]:
    model = reader.model
    ids = begun(model, model.tokenizer.encode(prompt))
    require(
        cut_left or len(ids) <= model.length,
        (
            "the prompt {prompt!r} has {count_of_ids} tokens, but the model reads at most {length}: shorten "
            "it, or pass --cut-left (cut_left=True) to read only its end"
        ),
        prompt=prompt[:40],
        count_of_ids=len(ids),
        length=model.length,
    )
    if len(ids) > model.length:
        notes[f"prompts longer than {model.length} tokens, cut on the left"] += 1
    return ids


def _source(reader: TokenReader, source: str, tokens: int, notes: Counter[str]) -> list[int]:
    """The tokens before the second text. If the source is cut, the notes count it."""
    ids = reader.model.tokenizer.encode(source)
    require(bool(ids), "the source text is empty: give a text")
    found, room = reader.source(ids, tokens)
    if len(ids) > room:
        notes[f"sources longer than {room} tokens, cut"] += 1
    return found


def _kept(reader: TokenReader, prompt: str) -> list[int]:
    """The tokens of the prompt that a generated text begins with: none if it was written from a source."""
    return [] if reader.second else reader.model.tokenizer.encode(prompt)


def begun(model: Model, prompt: Sequence[int]) -> list[int]:
    """What is read before a continuation: a prompt begins like a document; an empty prompt begins with the end token."""
    return [*model.opening, *prompt] if prompt else [model.tokenizer.role("sep"), *model.opening]


def _written(
    reader: TokenReader, texts: list[list[int]], prompts: list[str], how: Decoding, tokens: int, seed: int, samples: int
) -> list[list[tuple[list[int], bool]]]:
    """For every prompt, the new tokens of its texts, and whether each text ended."""
    if isinstance(how, Beams):
        search = last(reader, searches(reader, texts, how, tokens))
        kept = zip(search.finished[:, :samples].tolist(), search.length[:, :samples].tolist(), strict=True)
        rows = [[ids[:n] for ids, n in zip(*several, strict=True)] for several in kept]
    else:
        draft = last(reader, drafts(reader, texts, addresses(prompts, samples, seed), how, tokens))
        rows = draft.written[:, : int(draft.number)].view(len(texts), samples, -1).tolist()
    return [[(list(_until(reader.end, ids)), reader.end in ids) for ids in several] for several in rows]


def _until(end: int, ids: Iterable[int]) -> Iterator[int]:
    for i in ids:
        if i == end:
            return
        yield i


def _result(reader: TokenReader, prompt: str, sample: int, ids: list[int], ended: bool) -> Generated:
    text = whole(reader.model.tokenizer, _kept(reader, prompt), ids)
    return Generated(prompt, sample, text, tuple(ids), ended)
