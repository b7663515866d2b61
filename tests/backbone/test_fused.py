"""The kernels of fused relative attention without a GPU, in Triton's interpreter; on a GPU: tests/gpu/test_relative.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.backbone.relations import CASES
from unmask.backbone import fused

pytestmark = pytest.mark.skipif(
    not fused.AVAILABLE or np.lib.NumpyVersion(np.__version__) >= "2.4.0",
    reason="needs Triton, and a NumPy that its interpreter can count with (up to 2.3)",
)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float]]:
    """The errors of each case, from a process of its own: kernels are interpreted or compiled for all of a process."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.backbone.relations"],
        cwd=Path(__file__).parents[2], env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line.pop("case"): line for line in lines}


@pytest.mark.parametrize("case", CASES)
def test_interpreted_kernels_give_what_plain_operations_give(case, found):
    errors = found[case]
    assert set(errors) >= {"found", "content", "key_value", "placed", "place"}
    assert ("both" in errors) == CASES[case].segments
    assert all(error < 2e-6 for error in errors.values()), errors  # which no NaN is
