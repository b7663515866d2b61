"""Worker processes: results come in order, and no worker outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unmask.data.workers import in_workers, used_workers
from unmask.errors import UserError

ALONE = """
import os, time
from unmask.data.workers import in_workers

def pid(_):
    return os.getpid()

for number in in_workers(pid, range(100), 1):
    print(number, flush=True)
    time.sleep(60)
"""


def doubled(number: int) -> int:
    return 2 * number


def test_results_come_in_the_order_of_the_items():
    assert list(in_workers(doubled, range(20), 2)) == [2 * number for number in range(20)]


@pytest.mark.parametrize("number", [0, -1])
def test_a_number_of_workers_below_1_is_refused(number):
    with pytest.raises(UserError, match=f"--workers must be 1 or more, got {number}"):
        used_workers(number)


def test_a_worker_ends_when_its_parent_is_killed():
    code = [sys.executable, "-c", ALONE]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        os.kill(worker, 0)  # it is there
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and Path(f"/proc/{worker}").exists():
        state = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # ended; nobody asked for its status yet
            break
        time.sleep(0.1)
    else:
        assert not Path(f"/proc/{worker}").exists()
