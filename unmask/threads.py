"""Threads that wait for work must not spin for long: on a shared machine they take the cores from those that have some."""

from __future__ import annotations

import os
import sys

# GNU's OpenMP (in PyTorch's wheels) counts rounds of a loop, Intel's and LLVM's milliseconds. Two small trainings on two
# cores run an order of magnitude faster with these than with the defaults, and one alone is hardly slower.
WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}


def wait_without_spinning() -> None:
    """For this process and those it starts, unless the user has said how threads wait. No effect once torch is loaded."""
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        for name, value in WAITING.items():
            os.environ.setdefault(name, value)
