"""How a language model is scored: on a text (for the verb evaluate), and the verb for tasks by prompt, zero-shot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask import screen
from unmask.cli import labels, output
from unmask.cli.opening import opened
from unmask.cli.options import Device, Json, OwnRecipe, Run
from unmask.cli.program import verb
from unmask.errors import require

if TYPE_CHECKING:
    from unmask.infer.model import Model

# what a person is shown of a text, in order: the field, what it is called, how it is written
TEXT = (
    ("documents", "documents", "{:,}"), ("tokens", "tokens, with the ends of documents", "{:,}"),
    ("words", "words between spaces", "{:,}"), ("characters", "characters", "{:,}"), ("bytes", "bytes", "{:,}"),
    ("loss", "loss per token, in nats", "{:.4f}"), ("perplexity", "perplexity per token", "{:,.3f}"),
    ("perplexity_per_word", "perplexity per word", "{:,.3f}"), ("bits_per_byte", "bits per byte", "{:.4f}"),
    ("bits_per_character", "bits per character", "{:.4f}"), ("way", "way", "{}"), ("exactness", "which is", "{}"),
    ("context", "context, in tokens", "{:,}"), ("stride", "stride", "{:,}"), ("memory", "memory", "{:,}"),
    ("precision", "precision", "{}"), ("tokens_per_second", "tokens per second", "{:,.0f}"),
)  # fmt: skip
ASKED = (
    ("examples", "examples", "{:,}"), ("accuracy", "accuracy", "{:.4f}"),
    ("accuracy_unconditional", "accuracy, minus the likelihood without a prompt", "{:.4f}"),
    ("chance", "accuracy by chance", "{:.4f}"), ("normalise", "log-likelihood per", "{}"), ("macro_f1", "macro F1", "{:.4f}"),
    ("mcc", "mcc", "{:.4f}"), ("exact", "exact", "{:.4f}"), ("log_likelihood", "log-likelihood of an answer", "{:.4f}"),
    ("perplexity", "perplexity of an answer", "{:,.3f}"), ("perplexity_per_token", "perplexity per token", "{:,.3f}"),
)  # fmt: skip


def text(
    model: Model,
    file: Path,
    context: int | None,
    stride: int | None,
    memory: int | None,
    curve: Path | None,
    whole: bool,
    lines: bool,
    encoding: str,
    json_: bool,
    font: Path | None = None,
) -> None:
    """Score a text, with its curve if one is wanted, and say what came out."""
    from unmask import evaluate

    evaluate.check_kind(model, file)
    require(
        curve is None or not memory,
        "--curve measures windows, each read without a memory: leave --memory out, or give several lengths of it one by one",
    )
    require(
        font is None or (curve is not None and curve.suffix == ".png"),
        "--font is for a picture: give --curve FILE.png too, or leave --font out",
    )
    if curve is not None:
        evaluate.check_file(curve)
    way = evaluate.windowing(model, context=context, stride=stride, memory=memory)
    # once: what it could not keep is counted in the notes
    stream = evaluate.read_scored_text(model, file, whole=whole, lines=lines, encoding=encoding)
    scores = _last(evaluate.score_read_text(model, stream, way), "scoring", json_)
    if curve is not None:
        lengths = evaluate.checked_lengths(model, context=context)
        measured = _last(evaluate.trace_read_text(model, stream, lengths), "looking back", json_)
        output.lacking(evaluate.write_curve(measured, curve, f"{model.folder.name} on {file.name}", font), json_)
        scores = scores | {"curve": measured["points"], "notes": scores["notes"] | measured["notes"]}
    output.notes(scores.pop("notes"), json_)
    if json_:
        output.as_json(scores)
        return
    _table(f"{model.folder} on {file}", TEXT, scores)
    if curve is not None:
        screen.err.print(f"[dim]written to {curve}[/]")


@verb("unmask zero-shot runs/gpt2 reviews.jsonl --prompt sentiment.txt")
def zero_shot(
    run: Run,
    file: Annotated[
        Path,
        typer.Argument(help='Questions: JSON lines with "answer" (or "label"), "choices" and fields of the prompt.'),
    ],
    prompt: Annotated[
        str,
        typer.Option(
            help='A file, or the text itself, with {field} for values; a first line "choices: 1=good, 0=bad" for labels.'
        ),
    ],
    normalise: Annotated[
        str,
        typer.Option(help="Divide the log-likelihood of a choice by its number of: token, byte; none: do not divide."),
    ] = "token",
    unconditional: Annotated[
        bool, typer.Option("--unconditional", help="Also score with the likelihood without the prompt subtracted.")
    ] = False,
    cut_left: Annotated[
        bool,
        typer.Option("--cut-left", help="Cut a prompt that is too long at its beginning; otherwise it is an error."),
    ] = False,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Score a language model on questions put in words, without training on them: it takes the likeliest of several
    answers, or must continue with the right words. For models that read from left to right (gpt, gpt2, transformer-xl)."""
    from unmask import evaluate
    from unmask.tasks.prompt import read
    from unmask.text.template import Template

    scoring = evaluate.Scoring(normalise, unconditional, cut_left)  # type: ignore[arg-type]
    questions = read(file, Template.read(prompt))
    model = opened(run, recipe_file, device=device, json_=json_)
    scores = _last(evaluate.ask(model, questions, scoring), "asking", json_)
    output.notes(scores.pop("notes"), json_)
    if json_:
        output.as_json(scores)
        return
    _table(f"{run} on {file}", ASKED, scores)
    if "confusion" in scores:
        labels.show(scores)


def _table(title: str, fields: Iterable[tuple[str, str, str]], scores: dict[str, Any]) -> None:
    rows = [[name, form.format(scores[key])] for key, name, form in fields if scores.get(key) is not None]
    screen.table(title, ["score", ""], rows)


def _last(records: Iterable[dict[str, Any]], title: str, quiet: bool) -> dict[str, Any]:
    last: dict[str, Any] = {}
    for last in screen.reading(records, title, quiet, over="tokens"):
        pass
    return last
