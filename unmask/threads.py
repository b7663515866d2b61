"""Waiting threads must not spin for long: on a shared machine, a spinning thread takes a core from threads that work."""

from __future__ import annotations

import os
import sys

# The unit is loop rounds for GNU OpenMP (in the wheels of PyTorch), and milliseconds for OpenMP of Intel and LLVM. With
# these values, two small trainings on two cores run ten times faster than with the defaults; one alone is hardly slower.
WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}


def wait_without_spinning() -> None:
    """Set the values for this process and its children, unless the user has set OMP_WAIT_POLICY. No effect after torch is
    imported."""
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        for name, value in WAITING.items():
            os.environ.setdefault(name, value)
