"""Generate: go on with texts, token by token, with a model that reads from left to right.

What was read is kept by the network, so a step reads one token. A text that outgrows the context is read again from its
end, half a context of it, and grows from there: the window slides, and what left it is forgotten. Every random draw is
a function of the seed, the prompt, the number of the sample and the step: a prompt gives the same text alone and among
others. On a GPU the step is recorded and replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from unmask.errors import require
from unmask.infer.decode_text import pieces, whole
from unmask.infer.draw_token import addresses
from unmask.infer.generation_loop import drafts, last, searches
from unmask.infer.likelihood import SCORES
from unmask.infer.model import Model
from unmask.infer.next_token import NextToken
from unmask.infer.passes import Noted, together
from unmask.infer.sampling import Beams, Decoding, Greedy, Sampling


@dataclass(frozen=True)
class Generated:
    """A text that was gone on with."""

    prompt: str  # as it was given
    sample: int  # which of the texts of this prompt, counted from 0; of beams, the best first
    text: str  # the prompt and what was written after it; never half a character
    ids: tuple[int, ...]  # the new tokens, without the end
    ended: bool  # whether the model ended it, before it had all the tokens asked for


def generate(
    model: Model, prompts: Sequence[str], *, tokens: int = 50, sampling: Decoding | None = None, seed: int = 0,
    samples: int = 1, cut_left: bool = False, cached: bool = True,
) -> Noted[list[Generated]]:  # fmt: skip
    """For every prompt, in order, this number of samples, each with at most this number of tokens.

    `cut_left`: of a prompt that is longer than the context, the end is read. `cached=False` reads every text again for
    every token: slower, for comparison."""
    require(not isinstance(prompts, str), "generate takes a list of prompts, got one text: write [prompt]")
    how, reader = sampling or Sampling(), NextToken(model, cached)
    _check(how, tokens, samples)
    texts, notes = _encoded(reader, prompts, cut_left)
    copies = how.beams if isinstance(how, Beams) else samples
    lengths = [min(len(text) + tokens, model.length) for text in texts]
    found: dict[int, list[Generated]] = {}
    for some in together(lengths, rows=copies, most=max(1, SCORES // (copies * model.tokenizer.vocabulary.size))):
        chosen = some.tolist()
        written = _written(reader, [texts[i] for i in chosen], [prompts[i] for i in chosen], how, tokens, seed, samples)
        for number, several in zip(chosen, written, strict=True):
            found[number] = [_result(model, prompts[number], i, *one) for i, one in enumerate(several)]
    return Noted([one for number in range(len(prompts)) for one in found[number]], notes)


def stream(
    model: Model, prompt: str, *, tokens: int = 50, sampling: Greedy | Sampling | None = None, seed: int = 0,
    cut_left: bool = False, cached: bool = True,
) -> Noted[Iterator[str]]:  # fmt: skip
    """The prompt, then each new piece of text as it is drawn, up to its end: the first sample of `generate`."""
    how, reader = sampling or Sampling(), NextToken(model, cached)
    require(not isinstance(how, Beams), "beams are compared at the end, so nothing can be shown before: use generate")
    _check(how, tokens, 1)
    texts, notes = _encoded(reader, [prompt], cut_left)
    before = model.tokenizer.encode(prompt)
    written = drafts(reader, texts, addresses([prompt], 1, seed), how, tokens)
    new = pieces(model.tokenizer, before, _until(reader.end, (int(draft.last[0]) for draft in written)))
    return Noted(chain([model.tokenizer.decode(before)], new), notes)


def _check(how: Decoding, tokens: int, samples: int) -> None:
    require(tokens >= 1, f"tokens must be 1 or more, got {tokens}")
    require(samples >= 1, f"samples must be 1 or more, got {samples}")
    require(
        samples == 1 or not isinstance(how, Greedy), f"--greedy gives one text per prompt, {samples} samples were asked"
    )
    require(
        not isinstance(how, Beams) or samples <= how.beams,
        f"{samples} samples were asked of {getattr(how, 'beams', 0)} beams: ask for more --beams or fewer --samples",
    )


def _encoded(reader: NextToken, prompts: Sequence[str], cut_left: bool) -> tuple[list[list[int]], Counter[str]]:
    """The tokens of every prompt, which begins as a document does; an empty one comes after the end of another."""
    model, texts = reader.model, []
    notes = model.random_weights("token scores")
    for prompt in prompts:
        text = model.tokenizer.encode(prompt)
        ids = [*model.opening, *text] if text else [reader.end, *model.opening]
        require(
            cut_left or len(ids) <= model.length,
            f"the prompt {prompt[:40]!r} has {len(ids)} tokens, the model reads {model.length}: shorten it, or pass --cut-left "
            "(cut_left=True) to have its end read",
        )
        if len(ids) > model.length:
            notes[f"prompts longer than {model.length} tokens, cut on the left"] += 1
        texts.append(ids)
    return texts, notes


def _written(
    reader: NextToken, texts: list[list[int]], prompts: list[str], how: Decoding, tokens: int, seed: int, samples: int
) -> list[list[tuple[list[int], bool]]]:
    """For every prompt its new texts, and whether each ended."""
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


def _result(model: Model, prompt: str, sample: int, ids: list[int], ended: bool) -> Generated:
    text = whole(model.tokenizer, model.tokenizer.encode(prompt), ids)
    return Generated(prompt, sample, text, tuple(ids), ended)
