"""The lock of a folder."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from unmask.comparison.one_command import one_command
from unmask.errors import UserError


def test_a_second_command_is_refused_until_the_first_ends(tmp_path):
    said = "another 'unmask pipeline' works in .*new: wait for it, or stop it"
    with (
        one_command(tmp_path / "new", "compare"),
        pytest.raises(UserError, match=said),
        one_command(tmp_path / "new", "pipeline"),
    ):
        pass
    with one_command(tmp_path / "new", "pipeline"):
        pass


def test_a_worker_of_the_first_command_does_not_keep_the_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    works = context.Event()
    with one_command(tmp_path, "pipeline"):
        worker = context.Process(target=_work, args=(works,), daemon=True)
        worker.start()
        assert works.wait(60)
    try:
        with one_command(tmp_path, "pipeline"):
            assert worker.is_alive()
    finally:
        worker.kill()
        worker.join()


def _work(works) -> None:
    works.set()
    time.sleep(60)
