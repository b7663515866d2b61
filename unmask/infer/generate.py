"""Generate: go on with a text, token by token, with a model that reads from left to right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.batch import Batch
from unmask.errors import require
from unmask.infer.model import Model
from unmask.predict import Tokens


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn."""

    temperature: float = 1.0  # below 1 the likely become likelier; 0 takes the likeliest
    top_k: int | None = None  # draw among so many
    top_p: float | None = None  # draw among the likeliest that together have this probability

    def __post_init__(self) -> None:
        require(self.temperature >= 0, f"temperature must be 0 or more, got {self.temperature}")
        require(self.top_k is None or self.top_k >= 1, f"top-k must be 1 or more, got {self.top_k}")
        require(self.top_p is None or 0 < self.top_p <= 1, f"top-p must be in (0, 1], got {self.top_p}")

    def draw(self, scores: Tensor, generator: torch.Generator) -> int:
        if self.temperature == 0:
            return int(scores.argmax())
        chances = (scores.float() / self.temperature).softmax(-1)
        values, ids = chances.sort(descending=True)
        if self.top_k is not None:
            values[self.top_k :] = 0
        if self.top_p is not None:
            values[values.cumsum(0) - values >= self.top_p] = 0  # the first that crosses the line stays
        return int(ids[torch.multinomial(values, 1, generator=generator)])


def generate(
    model: Model, prompt: str, *, tokens: int = 50, sampling: Sampling | None = None, seed: int = 0
) -> Iterator[str]:
    """The prompt, then each new piece of text as it is drawn; stops at an end-of-document token."""
    require(tokens >= 1, f"tokens must be 1 or more, got {tokens}")
    head = model.head(Tokens, "generate text")
    onward = model.recipe.see.writes == "onward"  # type: ignore[attr-defined]
    require(onward, f"{model.folder} does not read from left to right: use 'unmask fill'")
    end = model.tokenizer.role("sep")
    ids = model.tokenizer.encode(prompt) or [end]
    require(len(ids) < model.length, f"the prompt has {len(ids)} tokens, the model reads {model.length}: shorten it")

    def scores(ids: list[int]) -> Tensor:
        batch = _row(ids[-model.length :]).to(model.device)
        return head.decode(model.system.look(batch), batch)[0, -1]  # type: ignore[no-any-return, operator]

    yield model.tokenizer.decode(ids)
    yield from stream(model, scores, ids, tokens=tokens, sampling=sampling or Sampling(), seed=seed)


def stream(
    model: Model, scores: Callable[[list[int]], Tensor], ids: list[int], *, tokens: int, sampling: Sampling, seed: int
) -> Iterator[str]:
    """Draw token after token, given the scores of the next one; yields what each adds to the text, up to its end."""
    end = model.tokenizer.role("sep")
    generator = torch.Generator().manual_seed(seed)
    special = [i for i in model.tokenizer.vocabulary.special if i != end]
    ids, shown = list(ids), model.tokenizer.decode(ids)
    for _ in range(tokens):
        with torch.no_grad():
            found = scores(ids).float().cpu()
        found[special] = -float("inf")
        drawn = sampling.draw(found, generator)
        if drawn == end:
            return
        ids.append(drawn)
        text = model.tokenizer.decode(ids)
        if not text.endswith("\ufffd"):  # a character whose bytes are not all there yet
            yield text[len(shown) :]
            shown = text


def _row(ids: list[int]) -> Batch:
    row = torch.tensor([ids])
    zeros, places = torch.zeros_like(row), torch.arange(len(ids))[None]
    one = torch.zeros(1, dtype=torch.long)
    return Batch(
        ids=row, word=places, sentence=zeros, example=zeros, segment=zeros, position=places,
        row=one, visit=one, summary=one + len(ids) - 1, label=one, counted=torch.ones(1),
    )  # fmt: skip
