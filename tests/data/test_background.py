"""What is made ready in the background arrives, fails where it is asked for, and can be forgotten at any time."""

from __future__ import annotations

import threading

import pytest

from tests.data.test_loader import reader
from unmask.data.background import begun
from unmask.data.reader import Place, Slot, blocks_from


def test_a_result_arrives_and_an_error_is_raised_where_it_is_asked_for():
    assert begun(lambda a, b: a + b, 1, 2).result() == 3
    with pytest.raises(ZeroDivisionError):
        begun(lambda: 1 / 0).result()


@pytest.mark.skipif(not hasattr(threading, "_shutdown_locks_lock"), reason="this Python starts threads without it")
def test_rows_can_be_forgotten_by_a_thread_that_holds_the_lock_of_all_threads():
    """As when the garbage collector runs while a thread is being started: whoever waits for a thread then waits for ever."""
    rows = blocks_from(reader(), Place(), Slot())
    next(rows)
    go, done = threading.Event(), threading.Event()

    def forget() -> None:
        go.wait()
        rows.close()
        done.set()

    threading.Thread(target=forget, daemon=True).start()
    with threading._shutdown_locks_lock:  # type: ignore[attr-defined]
        go.set()
        assert done.wait(20)
