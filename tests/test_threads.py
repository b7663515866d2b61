"""Threads that wait do not spin for long, wherever Unmask starts a process; what the user has set stays."""

import os
import subprocess
import sys

import pytest

COMMAND = "import os, sys; from unmask.cli import program; program._command = lambda: lambda: print('torch' in sys.modules, os.environ.get('GOMP_SPINCOUNT'), os.environ.get('KMP_BLOCKTIME')); program.main()"
PYTHON = "import os, unmask; unmask.load; print('', os.environ.get('GOMP_SPINCOUNT'), os.environ.get('KMP_BLOCKTIME'))"


# both call the same function; Python loads torch, which takes seconds
@pytest.mark.parametrize(
    "code, given, expected",
    [
        (COMMAND, {}, "1000 1"),
        (COMMAND, {"GOMP_SPINCOUNT": "7"}, "7 1"),
        (COMMAND, {"KMP_BLOCKTIME": "200"}, "1000 200"),
        (COMMAND, {"OMP_WAIT_POLICY": "ACTIVE"}, "None None"),
        (PYTHON, {}, "1000 1"),
        (PYTHON, {"OMP_WAIT_POLICY": "ACTIVE"}, "None None"),
    ],
)
def test_waiting_threads_are_told_not_to_spin_before_torch_is_loaded(code, given, expected):
    names = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    ran = subprocess.run([sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True)
    loaded, _, found = ran.stdout.strip("\n").partition(" ")
    assert found == expected
    assert loaded in ("", "False")
