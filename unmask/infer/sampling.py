"""The ways to choose the next token from the scores of all tokens. All tensors stay on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.errors import require


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What every way of choosing tokens may forbid."""

    least: int = 0  # a text has at least this number of new tokens before it may end
    no_repeat: int = 0  # no sequence of this number of tokens occurs twice in a text; 0: it may

    def check(self, penalty: float) -> None:
        require(
            penalty > 0,
            "repetition-penalty must be over 0, got {penalty:g}: 1 changes nothing, 1.2 repeats less",
            penalty=penalty,
        )
        require(self.least >= 0, "min-tokens must be 0 or more, got {least}", least=self.least)
        require(
            self.no_repeat >= 0,
            "no-repeat must be 1 token or more, or 0 to allow everything, got {no_repeat}",
            no_repeat=self.no_repeat,
        )


@dataclass(frozen=True)
class Greedy(Limits):
    """Always choose the most likely token."""

    repetition_penalty: float = 1.0  # over 1: tokens that are already in the text become less likely (CTRL)

    def __post_init__(self) -> None:
        self.check(self.repetition_penalty)


@dataclass(frozen=True)
class Sampling(Limits):
    """Draw a token by its probability."""

    temperature: float = 1.0  # below 1: likely tokens become even more likely
    top_k: int | None = None  # draw only from the `top_k` most likely tokens
    top_p: float | None = None  # draw only from the most likely tokens whose probabilities sum to `top_p`
    repetition_penalty: float = 1.0  # over 1: tokens that are already in the text become less likely (CTRL)

    def __post_init__(self) -> None:
        require(
            1e-4 <= self.temperature <= 1e4 or not self.temperature > 0,
            "temperature must be between 0.0001 and 10,000, got {temperature:g}",
            temperature=self.temperature,
        )
        require(
            self.temperature > 0,
            ("temperature must be over 0, got {temperature:g}: for the most likely token write --greedy (greedy=True)"),
            temperature=self.temperature,
        )
        require(self.top_k is None or self.top_k >= 1, "top-k must be 1 or more, got {top_k}", top_k=self.top_k)
        require(self.top_p is None or 0 < self.top_p <= 1, "top-p must be in (0, 1], got {top_p}", top_p=self.top_p)
        self.check(self.repetition_penalty)


@dataclass(frozen=True)
class Beams(Limits):
    """Beam search: extend several partial texts at once, and choose the finished text with the highest score.

    The score is the log probability divided by ((offset + length) / (offset + 1)) to the power of the penalty. Wu et al.
    (2016) and the Transformer have an offset of 5; most libraries have none."""

    beams: int = 4  # number of partial texts
    length_penalty: float = 1.0  # over 0 favours long texts
    repetition_penalty: float = 1.0  # over 1: tokens that are already in the text become less likely (CTRL)
    length_offset: int = 0  # over 0: short texts differ less in their penalties
    early: bool = False  # end a search when there are `beams` finished texts, even if a better one may still be found

    def __post_init__(self) -> None:
        require(self.beams >= 1, "beams must be 1 or more, got {beams}", beams=self.beams)
        require(
            self.length_offset >= 0,
            "length-offset must be 0 or more, got {length_offset}: write 5 for the formula of Wu et al. (2016)",
            length_offset=self.length_offset,
        )
        self.check(self.repetition_penalty)

    def divisor(self, length: Tensor) -> Tensor:
        """What the log probability of a text of this length is divided by."""
        return ((self.length_offset + length) / (self.length_offset + 1)) ** self.length_penalty


Decoding = Greedy | Sampling | Beams


def decoding(
    *, greedy: bool = False, temperature: float | None = None, top_k: int | None = None, top_p: float | None = None,
    repetition_penalty: float = 1.0, beams: int | None = None, length_penalty: float | None = None,
    length_offset: int | None = None, early: bool = False, least: int = 0, no_repeat: int = 0,
) -> Decoding:  # fmt: skip
    """The decoding that these options describe; without options, plain sampling. Contradicting options are an error."""
    drawing = {"temperature": temperature, "top-k": top_k, "top-p": top_p}
    given = [name for name, value in drawing.items() if value is not None]
    for other, wanted in (("greedy", greedy), ("beams", beams is not None)):
        require(
            not (wanted and given),
            "--{other} draws nothing at random and cannot be combined with --{given}: drop one of them",
            other=other,
            given=", --".join(given),
        )
    require(not (greedy and beams is not None), "--greedy and --beams cannot be used together: drop one of them")
    of_beams = {"length-penalty": length_penalty, "length-offset": length_offset, "early-stop": early or None}
    for name, value in of_beams.items():
        require(
            value is None or beams is not None,
            "--{name} has an effect only with --beams: give --beams too, or leave --{name} out",
            name=name,
        )
    if beams is not None:
        penalty = 1.0 if length_penalty is None else length_penalty
        return Beams(beams, penalty, repetition_penalty, length_offset or 0, early, least=least, no_repeat=no_repeat)
    if greedy:
        return Greedy(repetition_penalty, least=least, no_repeat=no_repeat)
    warmth = 1.0 if temperature is None else temperature
    return Sampling(warmth, top_k, top_p, repetition_penalty, least=least, no_repeat=no_repeat)


def pick(scores: Tensor, how: Greedy | Sampling, chance: Tensor) -> Tensor:
    """B, the next token of every row. `chance`: B, a random number in [0, 1) for each row."""
    if isinstance(how, Greedy):
        return scores.argmax(-1)
    # in double precision the product below never rounds up to the total, so a token with probability 0 is never drawn
    mass = chances(scores, how).double().cumsum(-1)
    return torch.searchsorted(mass, mass[:, -1:] * chance.double()[:, None], right=True)[:, 0]


def chances(scores: Tensor, how: Sampling) -> Tensor:
    """B V, the probability of every token after temperature, top-k and top-p, in this order."""
    scores = scores / how.temperature
    if how.top_k is not None:
        least = scores.topk(min(how.top_k, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, -float("inf"))
    found = scores.softmax(-1)
    if how.top_p is None:
        return found
    values, ids = found.sort(descending=True, stable=True)
    values = values.masked_fill(values.cumsum(-1) - values >= how.top_p, 0.0)  # the token that reaches top_p stays
    found = torch.zeros_like(found).scatter(-1, ids, values)
    return found / found.sum(-1, keepdim=True)
