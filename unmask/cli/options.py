"""The options that verbs share, and how their values are read."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask import screen
from unmask.errors import UserError, require

AnswerSettings = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Of a model that writes: how it writes, e.g. beams=1 or no_repeat=3."
    ),
]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="Change any value, e.g. hide.budget=0.2.")
]
Size = Annotated[str, typer.Option(help="tiny, mini, small, medium, base or large.")]
Variant = Annotated[str, typer.Option(help="paper, or another that the recipe names.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON; notices, notes and errors as JSON lines on the error output.")
]
Seed = Annotated[int, typer.Option(help="The seed of everything random.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default the GPU if there is one.")]
Fast = Annotated[
    bool,
    typer.Option(
        "--fast", help="Weights in 8 bits, for speed on a CPU. The file for it is made once and kept in the run."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
Errors = Annotated[str, typer.Option(help="strict: stop at damaged bytes; replace: replace them and count such lines.")]
Encoding = Annotated[
    str, typer.Option(help="How the files are encoded: utf-8, gb18030, big5, utf-16 or another that Python knows.")
]
Fold = Annotated[
    bool,
    typer.Option(
        "--fold",
        help="Read full-width letters, digits and marks as half-width ones. The tokenizer that is written does so too.",
    ),
]
Lines = Annotated[bool, typer.Option("--lines", help="Every line of a .txt file is a document.")]
Whole = Annotated[
    bool,
    typer.Option("--whole", help="A .txt file is one document, and blank lines are text: for characters and bytes."),
]
# how text is read where prepared data is expected
Lexicons = Annotated[
    list[Path], typer.Option(metavar="FILE", help="For text: phrases and entities, for ernie; repeatable.")
]
Graph = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="For text: vectors of 'unmask graph', whose entities are found, for ernie-thu."
    ),
]
TextLines = Annotated[bool, typer.Option("--lines", help="For text: every line of a .txt file is a document.")]
TextEncoding = Annotated[str | None, typer.Option(help="For text: how the files are encoded; by default utf-8.")]
TextHoldout = Annotated[
    str | None, typer.Option(help="For text: share of the tokens kept for validation; by default 0.5%.")
]
TextColumns = Annotated[
    list[str],
    typer.Option(
        "--text",
        metavar="NAME",
        help="The column of the text, twice for a pair; by default text, or text_a and text_b.",
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="The column of the label; by default label.")
]
Font = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A font file (.ttf, .otf, .ttc) for what the usual fonts cannot draw."),
]
TaskOfRun = Annotated[
    str | None, typer.Option("--task", metavar="NAME", help="Of a model with several tasks: the name of one.")
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
OwnRecipe = Annotated[
    Path | None,
    typer.Option("--recipe", metavar="FILE", help="The .py file of the run's recipe, if the run uses parts of it."),
]
CORPUS = "Files, folders or globs of .txt (blank line between documents), .jsonl or .parquet, also .gz, .xz, .zst."
Corpora = Annotated[
    list[str], typer.Argument(metavar="CORPUS...", help=CORPUS + " PATH:0.3 takes 30% of its documents.")
]
OptionalCorpora = Annotated[
    list[str], typer.Argument(metavar="CORPUS", help=CORPUS + " PATH:0.3 takes 30% of its documents.")
]


def share(text: str) -> float:
    """A share such as 0.5% or 0.005."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UserError("--holdout must be a share such as 0.5% or 0.005, got {text!r}", text=text) from None


def count(vocab: str | None) -> int | None:
    """The number of tokens of a new vocabulary."""
    if vocab is None or vocab.isdecimal():
        return None if vocab is None else int(vocab)
    raise UserError(
        "--vocab must be a number of tokens such as 30000, got {vocab!r}; +2000 is for --extend RUN", vocab=vocab
    )


def more(vocab: str | None) -> int:
    """The number of tokens that are added to a vocabulary."""
    if vocab is not None and vocab.startswith("+") and vocab[1:].isdecimal():
        return int(vocab[1:])
    raise UserError("--extend needs the number of new tokens, such as --vocab +2000, got {vocab}", vocab=vocab)


def refuse(given: Mapping[str, Any], other: str) -> None:
    """Refuse options that have no effect together with another one."""
    names = [name for name, value in given.items() if value]
    require(
        not names,
        "{names} has no effect with {other}: leave it out",
        names=" and ".join(names),
        other=other,
    )


def interrupt() -> Callable[[], bool]:
    """True after Ctrl-C, so that the loop can finish its step and save; a second Ctrl-C ends at once."""
    pressed: list[bool] = []

    def note(*_: Any) -> None:
        pressed.append(True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        screen.err.print("\n[yellow]stopping after this step and saving; press Ctrl-C again to stop at once[/]")

    signal.signal(signal.SIGINT, note)
    return lambda: bool(pressed)
