"""A folder with a small app in it, real workers on a database of their own, and what its server sees of them."""

import re
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.support.processes import Process, Processes, until
from tests.support.servers.address import execute
from windlass import App
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob

CHUNK = 5_000
TROUBLE = re.compile(r"failed(?:, trying again)?: |Traceback|lapsed|too late|ended: (?!exit code 0)")
"""What a worker says only when something is wrong."""


class Plant:
    """Workers reach the database by `url`, the test looks at it by the server's own address."""

    def __init__(self, folder: Path, direct: str, url: str | None = None) -> None:
        self.folder = folder
        self.direct = direct
        self.url = url or direct
        shutil.copy(Path(__file__).with_name("mill.py"), folder)
        self.processes = Processes(folder, {"WINDLASS_STORE": self.url})
        self.app = App(direct, deadline=30)
        self._watcher = psycopg.connect(direct, autocommit=True, application_name="the test")

    def worker(self, *options: str, url: str | None = None) -> Process:
        """A worker that claims: it has said so."""
        process = self.start_worker(*options, url=url)
        until(lambda: " is ready" in process.output or process.ended, "the worker claims")
        return process

    def start_worker(self, *options: str, url: str | None = None) -> Process:
        """A worker, not waited for."""
        command = ("-m", "windlass", "worker", "mill:app", *options)
        return self.processes.start("worker", *command, environment={"WINDLASS_STORE": url or self.url})

    def command(self, *arguments: str) -> tuple[int, str]:
        """A command of the CLI run to its end: its exit code and what it said."""
        process = self.processes.start(arguments[0], "-m", "windlass", *arguments)
        return process.wait(60), process.output

    def enqueue(self, type_: str, times: int, payload: str = "{}") -> list[str]:
        """So many jobs of a type."""
        ids: list[str] = []
        for start in range(0, times, CHUNK):
            jobs = [NewJob(id=new_id(), type=type_, payload=payload) for _ in range(min(CHUNK, times - start))]
            ids += [handle.id for handle in self.app.enqueue_many(jobs)]
        return ids

    def until_completed(self, jobs: int, seconds: float = 60.0) -> None:
        """Until so many are."""
        until(lambda: self.app.stats.counts().totals["completed"] == jobs, f"{jobs} jobs are completed", seconds)

    def runs(self) -> list[str]:
        """The ids of the jobs whose handlers ran, in the order in which they did."""
        path = self.folder / "effects"
        return path.read_text().split() if path.exists() else []

    def ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """Of the database, by the test's own connection."""
        return execute(self._watcher, question, *values)

    def sessions(self) -> list[str]:
        """The names of the sessions that are open on the database, ours left out."""
        found = self.ask(
            "SELECT application_name FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid() "
            "AND application_name LIKE 'windlass %%'",
            urlsplit(self.direct).path[1:],
        )
        return [name for (name,) in found]

    def stop(self, workers: Sequence[Process]) -> None:
        """Each ends with 0."""
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0] * len(workers)

    def check(self, ids: Sequence[str]) -> None:
        """Each of these ran once and is completed, and no process had any trouble."""
        runs = self.runs()
        assert len(runs) == len(set(runs)), "a job ran twice"
        assert set(runs) == set(ids)
        assert {status: n for status, n in self.app.stats.counts().totals.items() if n} == {"completed": len(ids)}
        self.check_outputs()

    def check_outputs(self) -> None:
        """No process said that something was wrong."""
        for process in self.processes.started:
            assert TROUBLE.search(process.output) is None, process.output

    def close(self) -> None:
        self.processes.end()
        self._watcher.close()
        self.app.close()
