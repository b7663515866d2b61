"""Generate texts from prompts in the way that fits the model: continue the prompt, or write a second text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.errors import require
from unmask.infer.generate import Generated, generate, stream
from unmask.infer.model import Model
from unmask.infer.passes import Noted
from unmask.infer.sampling import Decoding, Greedy, Sampling
from unmask.infer.write import write, write_all


def texts(
    model: Model, prompts: Sequence[str], *, tokens: int = 50, sampling: Decoding | None = None, seed: int = 0,
    samples: int = 1, cut_left: bool = False, cached: bool = True,
) -> Noted[list[Generated]]:  # fmt: skip
    """The texts of all prompts, in order."""
    if not _second(model):
        return generate(
            model,
            prompts,
            tokens=tokens,
            sampling=sampling,
            seed=seed,
            samples=samples,
            cut_left=cut_left,
            cached=cached,
        )
    _check(model, samples, cut_left, cached)
    found = write_all(model, prompts, tokens=tokens, sampling=sampling, seed=seed)
    both = zip(prompts, found.value, strict=True)
    return Noted([Generated(prompt, 0, one.text, one.ids, one.ended) for prompt, one in both], found.notes)


def shown(
    model: Model, prompt: str, *, tokens: int = 50, sampling: Greedy | Sampling | None = None, seed: int = 0,
    cut_left: bool = False, cached: bool = True,
) -> Noted[Iterator[str]]:  # fmt: skip
    """Yields the text of one prompt piece by piece, when it is written."""
    if not _second(model):
        return stream(model, prompt, tokens=tokens, sampling=sampling, seed=seed, cut_left=cut_left, cached=cached)
    _check(model, 1, cut_left, cached)
    return write(model, prompt, tokens=tokens, sampling=sampling, seed=seed)


def _second(model: Model) -> bool:
    return "prefix" in model.recipe.writes


def _check(model: Model, samples: int, cut_left: bool, cached: bool) -> None:
    given = {"--samples": samples != 1, "--cut-left": cut_left, "--no-cache": not cached}
    names = [name for name, value in given.items() if value]
    require(
        not names,
        "{folder} writes one second text for each source, and without a cache: drop {names}",
        folder=model.folder,
        names=" ".join(names),
    )
