"""A terminal that is closed: whatever runs in it is sent SIGHUP, and can print nothing more."""

import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator

import apsw
import pytest

from tests.e2e.stage import Stage
from tests.e2e.test_group_signals import enqueue_jobs
from tests.support.processes import until


class Window:
    """A terminal with one command in it."""

    def __init__(self, stage: Stage, *words: str) -> None:
        self._screen, self._keyboard = pty.openpty()
        os.set_blocking(self._screen, False)
        self._seen = b""
        self.command = subprocess.Popen(
            [sys.executable, "-m", "windlass", *words],
            cwd=stage.folder,
            env=stage.processes.environment,
            stdin=self._keyboard,
            stdout=self._keyboard,
            stderr=self._keyboard,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(self._keyboard)

    @property
    def text(self) -> str:
        with contextlib.suppress(OSError):  # nothing new
            self._seen += os.read(self._screen, 65536)
        return self._seen.decode(errors="replace")

    def close(self) -> None:
        """The kernel sends SIGHUP to the command; a process that writes to the terminal gets an error."""
        if self._screen >= 0:
            os.close(self._screen)
            self._screen = -1


def leaders(stage: Stage) -> list[object]:
    database = apsw.Connection(str(stage.folder / "jobs.db"))
    try:
        return list(database.execute("SELECT holder FROM windlass_leadership WHERE holder IS NOT NULL"))
    except (apsw.SQLError, apsw.BusyError):
        return []  # its tables are being made
    finally:
        database.close()


@pytest.fixture
def windows(den: Stage) -> Iterator[list[Window]]:
    opened: list[Window] = []
    yield opened
    for each in opened:
        each.close()
        each.command.kill()
        each.command.wait()


@pytest.mark.parametrize("command", ["worker", "dev"])
def test_a_worker_whose_terminal_is_closed_drains(den: Stage, windows: list[Window], command: str) -> None:
    windows.append(window := Window(den, command, "rogues:app", "--drain", "30s", "--lease", "2s"))
    until(lambda: " is ready" in window.text or window.command.poll() is not None, "the worker claims")
    ids = enqueue_jobs(den, "gate")
    den.until_started(ids)
    window.close()
    until(lambda: any(each.draining for each in den.app.workers.list()), "the drain begins")
    den.open("gate")
    assert window.command.wait(30) == 0
    for id_ in ids:
        job = den.job(id_)
        assert (job.status, job.attempt, job.failures, job.crashes) == ("completed", 1, 0, 0), job.error
    assert den.app.workers.list() == []


def test_a_coordinator_whose_terminal_is_closed_resigns(den: Stage, windows: list[Window]) -> None:
    windows.append(window := Window(den, "coordinator"))
    until(lambda: leaders(den), "it coordinates")
    window.close()
    assert window.command.wait(30) == 0
    assert leaders(den) == []
    assert not den.inside.is_left_behind()
