"""`unmask WORDS...` in a process of its own, so that a real signal can end it.

The processes are copies of one that has loaded everything already: to load torch takes longer than what they do.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0  # seconds until a process that does nothing is given up
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.process", "torch._dynamo", "unmask.api.model", "unmask.pretraining"])


class Process:
    """`unmask` with these words. Its error output goes to the file `err`."""

    def __init__(self, *words: str, err: Path) -> None:
        self.err = err
        self.process = _FORKS.Process(target=_main, args=(words, str(err)))
        self.process.start()

    def when(self, moment: Callable[[], bool], number: signal.Signals) -> bool:
        """Send a signal at the moment; False if the process ended before it came."""
        end = time.monotonic() + PATIENCE
        while self.process.is_alive() and time.monotonic() < end:
            if moment():
                os.kill(self.process.pid, number)  # type: ignore[arg-type]
                return True
            time.sleep(0.001)
        return False

    def end(self) -> tuple[int | None, str]:
        self.process.join(PATIENCE)
        return self.process.exitcode, self.err.read_text()


def _main(words: tuple[str, ...], err: str) -> None:
    import torch

    from unmask import cli

    torch.set_num_threads(1)
    with open(err, "w", buffering=1, encoding="utf-8") as sys.stderr:
        sys.argv = ["unmask", *words]
        cli.main()
