"""The program `unmask`: the typer app, how a verb joins it, and how it ends on an error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from unmask import __version__, screen
from unmask.errors import Notice, UserError
from unmask.threads import wait_without_spinning

_began = [time.monotonic()]  # when the command was given: a budget in time runs from here


def began() -> float:
    return _began[0]


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Pretrain, adapt, compare and use the language models of 2017-2020 on your own text.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        screen.out.print(f"unmask {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What holds for every verb."""


def verb(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb, its example shown at the end of its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__.strip("_").replace("_", "-")
        return app.command(name, epilog=f"Example: [cyan]{example}[/]")(function)

    return register


@cache
def _command() -> Any:
    """The app with all its verbs, made once: a program may call `main` many times."""
    return typer.main.get_command(app)


def main() -> None:
    _began[0] = time.monotonic()
    wait_without_spinning()
    json_ = "--json" in sys.argv
    warnings.simplefilter("ignore", Notice)  # the verbs say these themselves
    try:
        _run_for_a_program() if json_ else _command()()
    except UserError as error:
        screen.fail(str(error), json_=json_)
    except OSError as error:  # a full disk, a folder that may not be written
        screen.fail(f"{error.strerror or error}: {error.filename or 'no file named'}", json_=json_)


def _run_for_a_program() -> NoReturn:
    """The same, with wrong words on the command line as a UserError: typer would draw a box."""
    try:
        code: Any = _command()(standalone_mode=False)
    except typer.Abort:
        raise UserError("stopped") from None
    except Exception as error:
        said = getattr(error, "format_message", None)  # what typer and click raise for wrong words
        if said is None:
            raise
        raise UserError(said().rstrip(".")) from None
    sys.exit(code if isinstance(code, int) else 0)
