"""The verbs that score a model: evaluate, zero-shot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import labels, output
from unmask.cli.options import (
    AnswerSettings,
    Device,
    Encoding,
    Font,
    Json,
    LabelColumn,
    Lines,
    OwnRecipe,
    Run,
    TaskOfRun,
    TextColumns,
    Whole,
)
from unmask.cli.program import verb
from unmask.errors import UserError, require
from unmask.score_names import score_name

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
PAIRS = (
    ("pairs", "pairs", "{:,}"), ("accuracy", "accuracy", "{:.4f}"), ("mean_over_paradigms", "mean over paradigms", "{:.4f}"),
    ("likelihood", "by likelihood alone", "{:.4f}"), ("pseudo-likelihood", "by pseudo-likelihood alone", "{:.4f}"),
    ("way", "way", "{}"), ("track", "track", "{}"), ("precision", "precision", "{}"),
    ("pairs_per_second", "pairs per second", "{:,.0f}"),
)  # fmt: skip
LAST_WORDS = (
    ("examples", "examples", "{:,}"), ("accuracy", "accuracy", "{:.4f}"), ("perplexity", "perplexity of an answer", "{:,.3f}"),
    ("perplexity_per_token", "perplexity per token", "{:,.3f}"), ("way", "way", "{}"), ("precision", "precision", "{}"),
)  # fmt: skip


@verb("unmask evaluate runs/bert-sst2 test.jsonl")
def evaluate(
    run: Run,
    test: Annotated[
        Path,
        typer.Argument(
            help="Examples of its task; for several tasks, their folder; if it was not adapted: minimal pairs, last words or a text."
        ),
    ],
    context: Annotated[
        int | None, typer.Option(help="Of a text: tokens in a window; as in training if not given.")
    ] = None,
    stride: Annotated[int | None, typer.Option(help="Tokens by which windows advance; 1 is exact and slow.")] = None,
    memory: Annotated[int | None, typer.Option(help="Tokens to remember, for a model with a memory.")] = None,
    curve: Annotated[
        Path | None, typer.Option(help="Also draw (.png) or write (.json) the loss for several context lengths.")
    ] = None,
    font: Font = None,
    whole: Whole = False,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    text: TextColumns = [],  # noqa: B006
    label: LabelColumn = None,
    confusion: Annotated[
        Path | None, typer.Option(help="Also write the whole confusion matrix to this .csv file, truth in rows.")
    ] = None,
    settings: AnswerSettings = [],  # noqa: B006
    task: TaskOfRun = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Accuracy, macro F1, Matthews' correlation and the confusion matrix of an adapted model (of more than ten labels: a
    table by label, and the worst confusions); of one that chooses, accuracy; of one that writes, ROUGE, BLEU and chrF.

    Of a model that was not adapted, on JSON lines with "good" and "bad" (and
    "paradigm"): how often it prefers the good sentence, by likelihood (left to
    right), pseudo-likelihood (masked) or the score of replaced tokens (ELECTRA).

    If it also reads from left to right: loss, perplexity and bits per byte on a
    text; on JSON lines with "context", "answer" and "after", how often it
    continues with the last word."""
    said = output.Said(json_)
    model = unmask.load(run, device=device, task=task, recipe=recipe_file, tell=said)
    if test.is_dir():
        _show_tasks(model.evaluate_tasks(test, tell=said), f"{run} on {test}", said, json_)
        return
    model = model.answering(settings) if settings else model
    if (not model.labels and confusion) or (model.recipe.task is None and (text or label)):
        raise UserError(
            "--text, --label and --confusion are for labels, and {run} was not adapted to any: leave them out", run=run
        )
    if confusion is not None:
        labels.check_matrix(confusion)
    scores = model.evaluate(
        test, context=context, stride=stride, memory=memory, whole=whole, lines=lines, encoding=encoding, text=text,
        label=label, curve=curve, font=font, progress=not json_, tell=said,
    )  # fmt: skip
    said.show_notes()
    output.notice(labels.one_label(scores) if "confusion" in scores else None, json_)
    if confusion is not None:
        require(
            "confusion" in scores,
            "--confusion is for labels without spans, and {run} scores spans: leave it out",
            run=run,
        )
        labels.write_matrix(scores, confusion)
    if json_:
        output.as_json(scores)
        return
    if "paradigms" in scores:
        _show_pairs(f"{run} on {test}", scores)
    elif scores.get("way") == "last word":
        _table(f"{run} on {test}", LAST_WORDS, scores)
    elif model.is_language_model:
        _table(f"{run} on {test}", TEXT, scores)
    else:
        screen.table(f"{run} on {test}", ["score", ""], list(_numbers(scores)))
    if curve is not None:
        screen.err.print(f"[dim]written to {curve}[/]")
    if "confusion" in scores:
        labels.show(scores)
    if "per_type" in scores:
        labels.show_types(scores)
    if confusion is not None:
        screen.err.print(f"[dim]the confusion matrix is written to {confusion}[/]", soft_wrap=True)
    elif len(scores.get("labels", ())) > labels.MOST:
        screen.err.print("[dim]the whole confusion matrix: --confusion FILE.csv[/]", soft_wrap=True)


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
        bool, typer.Option("--unconditional", help="Also score by log-likelihood minus log-likelihood without prompt.")
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
    said = output.Said(json_)
    model = unmask.load(run, device=device, recipe=recipe_file, tell=said)
    way: Any = normalise  # any word: the API refuses what it does not know
    scores = model.zero_shot(file, prompt=prompt, normalise=way, unconditional=unconditional, cut_left=cut_left,
                             progress=not json_, tell=said)  # fmt: skip
    said.show_notes()
    if json_:
        output.as_json(scores)
        return
    _table(f"{run} on {file}", ASKED, scores)
    if "confusion" in scores:
        labels.show(scores)


def _show_tasks(scores: dict[str, dict[str, Any]], title: str, said: output.Said, json_: bool) -> None:
    """A line for each task, with the score that stands for it, and the mean."""
    said.show_notes()
    if json_:
        output.as_json(scores)
        return
    mains = {name: one["main"] for name, one in scores.items()}
    rows = [
        [name, f"{scores[name]['examples']:,}", score_name(main["measure"]), f"{main['score']:.4f}"]
        for name, main in mains.items()
    ]
    mean = sum(main["score"] for main in mains.values()) / len(mains)
    screen.table(title, ["task", "examples", "score", ""], [*rows, ["mean", "", "", f"{mean:.4f}"]])


def _table(title: str, fields: Iterable[tuple[str, str, str]], scores: dict[str, Any]) -> None:
    rows = [[name, form.format(scores[key])] for key, name, form in fields if scores.get(key) is not None]
    screen.table(title, ["score", ""], rows)


def _show_pairs(title: str, scores: dict[str, Any]) -> None:
    _table(title, PAIRS, scores | (scores["by_way"] if len(scores["by_way"]) > 1 else {}))
    rows = [[one["paradigm"], f"{one['pairs']:,}", f"{one['accuracy']:.4f}"] for one in scores["paradigms"]]
    if rows:
        screen.table("by paradigm", ["paradigm", "pairs", "accuracy"], rows)


def _numbers(scores: dict[str, Any]) -> Iterator[list[str]]:
    """The scores of a task that are one number each, as they are shown."""
    yield ["examples", f"{scores['examples']:,}"]
    for name in ("queries", "queries_left_out"):  # of rankings
        if scores.get(name):
            yield [name.replace("_", " "), f"{scores[name]:,}"]
    for name, value in scores.items():
        if isinstance(value, float):
            yield [score_name(name), f"{value:.4f}"]
        if isinstance(value, str):
            yield [score_name(name), value]
        if name == "accuracy" and "majority" in scores:
            yield [
                f"accuracy of always saying {scores['majority']['label']!r}",
                f"{scores['majority']['accuracy']:.4f}",
            ]
