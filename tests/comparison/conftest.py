"""Comparisons whose jobs run in this process."""

import signal

import pytest

from unmask import comparison
from unmask.comparison import job as jobs


class Ended:
    """A process that has ended."""

    returncode = 0

    def poll(self):
        return self.returncode

    def send_signal(self, number): ...

    def wait(self, seconds=None): ...


@pytest.fixture
def here(monkeypatch):
    """Jobs run in this process, one after the other. Returns the names of those that ran."""
    ran = []

    def started(work, job, *, control):
        """As the process would run it."""
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            ran.append((job.name, control))
            jobs.main(work.folder, jobs.write_job(work.folder, job, control=control, at_once=work.at_once))
        finally:
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
                signal.signal(number, handler)
        return comparison._Running(job, Ended())

    monkeypatch.setattr(comparison._Work, "_started", started)
    monkeypatch.setattr(comparison, "EVERY", 0.0)
    return ran
