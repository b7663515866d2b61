"""Context curve: the loss of the same tokens when the language model sees 1, 2, 4 ... tokens before each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import UserError, require
from unmask.evaluate.perplexity import Paths, about_context, checked_context
from unmask.evaluate.scored_text import ScoredText, read_scored_text
from unmask.fonts import fonts
from unmask.infer.likelihood import require_predicts_next, score
from unmask.infer.model import Model
from unmask.infer.passes import PASS

# The number of tokens that are measured at every length, evenly spread over the text. Models with the same tokenizer are
# measured at the same tokens.
TOKENS = 1024
SUFFIXES = (".png", ".json")


def context_curve(
    model: Model, files: Paths, *, lengths: Sequence[int] | None = None, tokens: int = TOKENS, whole: bool = False
) -> dict[str, Any]:
    """The mean loss of the same tokens for each number of tokens that the model may look back, and how many tokens."""
    *_, last = trace_context(model, files, lengths=lengths, tokens=tokens, whole=whole)
    return last


def trace_context(
    model: Model,
    files: Paths,
    *,
    context: int | None = None,
    lengths: Sequence[int] | None = None,
    tokens: int = TOKENS,
    whole: bool = False,
) -> Iterator[dict[str, Any]]:
    """Measure the curve, yielding a record per pass. The last record holds the curve and `notes`.

    By default the lengths are 1, 2, 4 ... up to `context` - 1, the most tokens before the last token of a window."""
    require_predicts_next(model)
    lengths = checked_lengths(model, context=context, lengths=lengths)
    yield from trace_read_text(model, read_scored_text(model, files, whole=whole), lengths, tokens=tokens)


def checked_lengths(model: Model, *, context: int | None = None, lengths: Sequence[int] | None = None) -> list[int]:
    """The numbers of tokens to look back: the given ones, or by default 1, 2, 4 ... up to `context` - 1."""
    lengths = _doubling(checked_context(model, context) - 1) if lengths is None else sorted(set(lengths))
    require(bool(lengths) and lengths[0] >= 1, "lengths must be 1 token or more, got {lengths}", lengths=list(lengths))
    require(
        model.system.backbone.endless or lengths[-1] < model.places,
        "lengths must be between 1 and {places:,} tokens, got {lengths}",
        places=model.places - 1,
        lengths=list(lengths),
    )
    return lengths


def trace_read_text(
    model: Model, stream: ScoredText, lengths: Sequence[int], *, tokens: int = TOKENS
) -> Iterator[dict[str, Any]]:
    """Like `trace_context`, for a text that is already read. `lengths` must be sorted, the shortest first."""
    require(tokens >= 1, "tokens must be 1 or more, got {tokens}", tokens=tokens)
    ids, longest = stream.ids, lengths[-1]
    require(
        len(ids) > longest,
        (
            "no token of {name} has {longest:,} tokens before it, because the text has only {count_of_ids:,} "
            "tokens: lower --context"
        ),
        name=stream.name,
        longest=longest,
        count_of_ids=len(ids) - 1,
    )
    places = np.unique(np.linspace(1, len(ids) - 1, tokens).round().astype(np.int64))
    places = places[places >= longest]  # other tokens do not have enough tokens before them
    points, done, total = [], 0, len(places) * sum(lengths)
    for length in lengths:
        nats = 0.0
        for some in np.split(places, range(PASS // length or 1, len(places), PASS // length or 1)):
            nats -= float(score(model, [ids[at - length : at + 1] for at in some], [1] * len(some)).logs.sum())
            done += len(some) * length
            yield {"tokens": done, "tokens_total": total}
        points.append({"back": length, "loss": nats / len(places)})
    notes = stream.notes + about_context(model, longest + 1)
    yield {"tokens": len(places), "points": points, "notes": dict(notes)}


def check_file(path: Path) -> None:
    """Refuse a file name that a curve cannot be written to, before any work is done."""
    require(path.suffix in SUFFIXES, "the file for a curve must end in .png or .json, got {path}", path=path)
    require(path.parent.is_dir(), "the folder {parent} does not exist: create it, or name another", parent=path.parent)
    if path.suffix == ".png":
        _matplotlib()


def write_curve(curve: dict[str, Any], path: Path, title: str, font: Path | None = None) -> str:
    """Write the curve as JSON, or draw the loss over the number of tokens that the model looks back (log scale).

    Returns the characters of the title that no font can draw. `font`: a font file to use."""
    check_file(path)
    if path.suffix == ".json":
        path.write_text(json.dumps(curve, indent=1), encoding="utf-8")
        return ""
    known = fonts(font)
    figure = _matplotlib()(figsize=(7, 4.5), dpi=100, layout="constrained")
    axes = figure.subplots()
    back, loss = zip(*((point["back"], point["loss"]) for point in curve["points"]), strict=True)
    axes.plot(back, loss, marker="o", color="#3b7dc4")
    axes.set_xscale("log", base=2)
    axes.set_xticks(back, labels=list(map(str, back)), minor=False)
    axes.set_xlabel("tokens it may look back")
    axes.set_ylabel(f"mean loss of the same {curve['tokens']:,} tokens, in nats")
    axes.set_title(known.drawable(title), loc="left", fontweight="bold", family=known.of(title))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    return known.lacking(title)


def _doubling(furthest: int) -> list[int]:
    """1, 2, 4 ... and `furthest` itself."""
    return [1 << power for power in range(furthest.bit_length()) if 1 << power < furthest] + [furthest]


def _matplotlib() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError(
            "a picture needs matplotlib, which is not installed: run pip install 'unmask[pictures]', or name a .json file"
        ) from None
    return Figure
