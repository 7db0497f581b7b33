"""The setup of a check: a server on a temporary store, a lossy proxy before it, and the checked worker."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TypeVar

from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.errors import ConfigError
from windlass.testing.workers.proxy import LossyProxy
from windlass.worker.processes import kill_marked

T = TypeVar("T")
LEASE = 2.0
"""Seconds. Short, so that a check of silence does not take long; longer for a worker that starts processes slowly."""
PATIENCE = 30.0
START_SECONDS = 60.0
STOP_SECONDS = 15.0
QUEUE = "check"
MARK = "WINDLASS_CHECK"
"""An environment variable of the worker and of all processes that it starts."""


class Broken(Exception):
    """The worker does not follow a rule; the message says why."""


class Stage:
    """Server, proxy and worker of a check, which end with it."""

    def __init__(self, command: Sequence[str], lease: float = LEASE) -> None:
        self._command, self.lease = list(command), lease
        self._made = ExitStack()
        self._mark = secrets.token_hex(8)
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Stage":
        folder = Path(self._made.enter_context(TemporaryDirectory(prefix="windlass-check-")))
        store, self._port = f"sqlite:///{folder}/jobs.db", _free_port()
        self.app = App(store)
        self._made.callback(self.app.close)
        self.token = self.app.tokens.create("checked-worker", ["work"]).text
        try:
            self._start_server(store, folder / "server.log")
        except BaseException:
            self._made.close()
            raise
        self.proxy = self._made.enter_context(LossyProxy("127.0.0.1", self._port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._made.close()

    def _start_server(self, store: str, log: Path) -> None:
        words = ["-m", "windlass", "serve", "--store", store, "--port", str(self._port), "--unready", "0s"]
        out = self._made.enter_context(log.open("wb"))
        server = subprocess.Popen(
            [sys.executable, *words, "--worker-lease", f"{self.lease:g}s"], stdout=out, stderr=subprocess.STDOUT
        )
        self._made.callback(server.wait)
        self._made.callback(server.terminate)
        self.until(
            lambda: server.poll() is not None or _is_ready(self._port), "the server does not start", START_SECONDS
        )
        if server.poll() is not None:
            raise ConfigError(f"windlass serve does not start: {log.read_text(errors='replace').strip()}")

    def start(self) -> None:
        """Start the worker, unless it runs."""
        if self._worker is not None and self._worker.poll() is None:
            return
        environment = {
            **os.environ,
            "WINDLASS_SERVER": f"http://127.0.0.1:{self.proxy.port}",
            "WINDLASS_TOKEN": self.token,
            "QUEUES": QUEUE,
            MARK: self._mark,
        }
        try:
            self._worker = subprocess.Popen(self._command, env=environment, start_new_session=True)
        except OSError as error:
            raise Broken(f"it cannot be started: {error}") from None
        self.until(self.types, "it makes no claim that opens a lease")

    def kill(self) -> None:
        """Kill the worker with all its processes, as a lost machine would."""
        if self._worker is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._worker.pid, signal.SIGKILL)
            with suppress(OSError):  # no /proc here
                kill_marked(f"{MARK}={self._mark}")  # what it started in sessions of their own
            self._worker.wait()

    def terminate(self) -> None:
        """Tell the worker to stop."""
        assert self._worker is not None
        self._worker.terminate()

    def exit_code(self) -> int:
        """Its exit code; raises Broken if it does not end."""
        assert self._worker is not None
        try:
            return self._worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Broken(f"it does not end within {STOP_SECONDS:g} s of SIGTERM") from None

    def end_lease(self, worker: str) -> None:
        """End a worker's lease without its knowledge, as a server does after a long silence."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/api/v1/claims/end",
            data=json.dumps({"worker": worker}).encode(),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json"},
        )
        urllib.request.urlopen(request).close()

    def clear(self) -> None:
        """Remove what a broken rule may have left: the worker, its jobs and its lease."""
        self.kill()
        for job in self.app.jobs.iter(queue=QUEUE):
            if not job.finished:
                self.app.jobs.cancel(job.id)
        # A claim that it left open could take a job of the next rule.
        self.until(lambda: not self.types(), "the server does not end its lease")

    def types(self) -> frozenset[str]:
        """The types of the workers that have a lease."""
        return frozenset(type_ for worker in self.app.workers.list() for type_ in worker.types)

    def enqueue(self, type_: str, timeout: float | None = None, max_attempts: int = 3, **payload: object) -> str:
        """The id of a new job of the check."""
        name, attempts = f"check.{type_}", max_attempts
        return self.app.enqueue(name, payload, queue=QUEUE, max_attempts=attempts, timeout=timeout).id

    def job(self, id_: str) -> Job:
        """The job as it is now."""
        return self.app.jobs.get(id_)

    def ended(self, id_: str) -> Job:
        """The job, when it is finished."""
        self.until(lambda: self.job(id_).finished, f"a job of type {self.job(id_).type} does not end")
        return self.job(id_)

    def completed(self, id_: str, attempt: int = 1) -> Job:
        """The job, which must complete at this attempt."""
        job = self.ended(id_)
        expect(
            job.status == "completed", f"a job of type {job.type} ended as {job.status}: {job.reason or job.error}"
        )
        expect(job.attempt == attempt, f"a job of type {job.type} took {job.attempt} attempts instead of {attempt}")
        return job

    def running(self, id_: str) -> None:
        """Wait until the worker has claimed the job."""
        self.until(lambda: self.job(id_).status == "running", "it does not claim a job")

    def until(self, look: Callable[[], T], otherwise: str, seconds: float | None = None) -> T:
        """Wait for a true result of `look`, and return it; raises Broken if there is none in time."""
        seconds = PATIENCE + 5 * self.lease if seconds is None else seconds
        end = time.monotonic() + seconds
        while not (found := look()):
            expect(time.monotonic() < end, f"{otherwise} (within {seconds:g} s)")
            time.sleep(0.02)
        return found


def expect(is_true: object, otherwise: str) -> None:
    """Raise Broken unless it is true."""
    if not is_true:
        raise Broken(otherwise)


def _free_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _is_ready(port: int) -> bool:
    with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz"):
        return True
    return False
