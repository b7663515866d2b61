"""The command line as a user meets it, in this process: words in; exit code, output and error output out."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from unmask import cli

BERT = ["schedule.0.length=32", "schedule.1.length=64", "schedule.*.rows=8"]
ONE_STAGE = ["schedule.0.length=32", "schedule.*.rows=8"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(*words: object) -> Ran:
    """`unmask WORDS...`; an error that is not a UserError comes through with its traceback and fails the test."""
    out, err, code, before = io.StringIO(), io.StringIO(), 0, signal.getsignal(signal.SIGINT)
    given = mock.patch.object(sys, "argv", ["unmask", *map(str, words)])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), given:
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            signal.signal(signal.SIGINT, before)
    return Ran(code, out.getvalue(), err.getvalue())


def works(*words: object) -> Ran:
    ran = run(*words)
    assert ran.code == 0, ran.err
    return ran


def mistake(*words: object) -> str:
    """The one line that a user's mistake gives; nothing else is shown after it."""
    ran = run(*words)
    assert ran.code == 1, (ran.code, ran.err)
    assert "Traceback" not in ran.err
    lines = [
        line for line in ran.err.splitlines() if line.startswith(("error: ", '{"error": '))
    ]  # the latter with --json
    assert len(lines) == 1, ran.err
    assert ran.err.rstrip().endswith(lines[0]), ran.err
    return lines[0]


def settings(values: list[str]) -> list[str]:
    return [word for value in values for word in ("--set", value)]


def pretrain(recipe: str, data: object, out: Path, *words: object, steps: int = 4, call: Callable = works):
    """A quick pretraining at size tiny, or of the network that --from gives; `call` is works, mistake or run."""
    short = BERT if recipe == "bert" else ONE_STAGE
    size = [] if "--from" in words else ["--size", "tiny"]
    return call("pretrain", recipe, data, "--out", out, *size, "--budget", f"{steps}steps", "--device", "cpu",
                *settings(short), *words)  # fmt: skip


def snapshot(place: Path) -> dict[str, bytes]:
    """Every file under a place, to see later that nothing of it was lost."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}
