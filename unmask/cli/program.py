"""The program `unmask`: the typer app, how a verb joins it, and how it ends on an error."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer

from unmask import screen
from unmask.errors import Mistake
from unmask.threads import wait_without_spinning

_began = [time.monotonic()]  # when the command was given: a budget in time runs from here


def began() -> float:
    return _began[0]


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Pretrain, adapt, compare and serve the language models of 2017-2020 on your own text.",
)


def verb(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb, its example shown at the end of its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__.strip("_").replace("_", "-")
        return app.command(name, epilog=f"Example: [cyan]{example}[/]")(function)

    return register


def main() -> None:
    _began[0] = time.monotonic()
    wait_without_spinning()
    try:
        app()
    except Mistake as mistake:
        screen.fail(str(mistake))
    except OSError as error:  # a full disk, a folder that may not be written
        screen.fail(f"{error.strerror or error}: {error.filename or 'no file named'}")
