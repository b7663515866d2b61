"""The kernels of fused relative attention without a GPU, in Triton's interpreter; on a GPU: tests/gpu/test_relative.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.backbone.relations import CASES
from unmask.backbone import fused_attention
from unmask.errors import UserError

interpreted = pytest.mark.skipif(
    not fused_attention.AVAILABLE or np.lib.NumpyVersion(np.__version__) >= "2.4.0",
    reason="needs Triton, and a NumPy that its interpreter can count with (up to 2.3)",
)


def interpreted_errors() -> dict[str, dict[str, float]]:
    """The errors of each case, from a process of its own: kernels are interpreted or compiled for all of a process."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.backbone.relations"],
        cwd=Path(__file__).parents[2], env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line.pop("case"): line for line in lines}


@interpreted
def test_interpreted_kernels_give_what_plain_operations_give():
    found = interpreted_errors()
    assert found.keys() == CASES.keys()
    for case, errors in found.items():
        assert set(errors) >= {"found", "content", "key_value", "placed", "place"}, case
        assert ("both" in errors) == CASES[case].segments, case
        assert all(error < 2e-6 for error in errors.values()), (case, errors)  # which no NaN is


@pytest.mark.parametrize(
    "width, dtype, expected",
    [(64, torch.float64, "got torch.float64: convert the model"), (300, torch.bfloat16, "up to width 256, got 300")],
)
def test_what_the_kernels_cannot_do_is_refused(width, dtype, expected):
    with pytest.raises(UserError, match=expected):
        fused_attention.tiles(width, dtype)


def test_more_tokens_in_one_window_than_are_counted_are_refused():
    queries, keys = 1 << 16, 1 << 15
    content = torch.empty(1, 1, queries, 16, device="meta")
    place, both = torch.empty(1, 1, keys, 16, device="meta"), torch.empty(1, 2, keys, 16, device="meta")
    with pytest.raises(UserError, match="65,536 tokens that see 32,768: lower --context or --memory"):
        fused_attention.check_size(content, both, place)
