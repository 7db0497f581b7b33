"""One store, the user's app, the workers on it, and the questions that every test asks at its end."""

import json
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.ended import all_ended
from tests.support.history import History
from tests.support.inside import inside
from tests.support.processes import Process, Processes, until
from windlass import App, Job, NewJob
from windlass.client.tasks.options import check_options
from windlass.core.ids import new_id

SHOP = Path(__file__).with_name("shop.py")


class Stage:
    """A folder in which jobs are enqueued, worked on, and looked at from outside."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.inside = inside(url, folder)
        self.app = App(self.url, deadline=30)
        self.processes = Processes(folder, {"WINDLASS_STORE": self.url})
        self.workers: list[Process] = []
        self.ids: list[str] = []
        shutil.copy(SHOP, folder / "shop.py")

    # Enqueuing and looking.

    def enqueue(
        self, type: str, times: int = 1, /, options: dict[str, Any] | None = None, **payload: Any
    ) -> list[str]:
        """So many jobs of this type, all at once; their ids."""
        return self.enqueue_all([self.make(type, options, **payload) for _ in range(times)])

    def enqueue_one(self, type: str, /, options: dict[str, Any] | None = None, **payload: Any) -> str:
        return self.enqueue(type, 1, options, **payload)[0]

    def enqueue_all(self, jobs: Sequence[NewJob]) -> list[str]:
        """All or none, best first in this order."""
        ids = [handle.id for handle in self.app.enqueue_many(jobs)]
        self.ids += ids
        return ids

    @staticmethod
    def make(type: str, options: dict[str, Any] | None = None, /, **payload: Any) -> NewJob:
        return NewJob(
            **{"id": new_id(), "type": type, "payload": json.dumps(payload), **check_options(options or {})}
        )

    def job(self, id_: str) -> Job:
        return self.app.jobs.get(id_)

    def all_jobs(self, status: str | Sequence[str] = (), type: str | None = None) -> list[Job]:
        """Every job in the store, page by page."""
        found: list[Job] = []
        cursor = None
        while True:
            page = self.app.jobs.list(status=status, type=type, limit=500, cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    def open(self, gate: str) -> None:
        """Let the handlers go that wait at this gate."""
        (self.folder / gate).touch()

    @property
    def history(self) -> History:
        return History(self.folder / "effects")

    # Processes.

    def worker(
        self, *options: str, lease: str = "2s", app: str = "shop:app", environment: Mapping[str, str] | None = None
    ) -> Process:
        """A worker that claims: it has said so."""
        process = self.start_worker(*options, lease=lease, app=app, environment=environment)
        self.until_ready(process)
        return process

    def start_worker(
        self, *options: str, lease: str = "2s", app: str = "shop:app", environment: Mapping[str, str] | None = None
    ) -> Process:
        """A worker, not waited for."""
        words = ("-m", "windlass", "worker", app, "--lease", lease, *options)
        process = self.processes.start("worker", *words, environment=environment)
        self.workers.append(process)
        return process

    def command(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a command of the CLI to its end; what it said."""
        process = self.processes.start(arguments[0], "-m", "windlass", *arguments, environment=environment)
        code = process.wait()
        assert code == 0, f"windlass {' '.join(arguments)} ended with {code}:\n{process.output}"
        return process.output

    # Waiting.

    def until_ready(self, worker: Process) -> None:
        """Until a worker says that it claims, or has ended."""
        until(lambda: " is ready" in worker.output or worker.ended, "the worker claims")

    def until_started(self, ids: Collection[str]) -> None:
        """Until a handler has begun for each of these."""
        until(lambda: set(ids) <= self.history.runs().keys(), f"{len(ids)} jobs start")

    def until_status(self, id_: str, *status: str) -> Job:
        until(lambda: self.job(id_).status in status, f"{id_} is {' or '.join(status)}")
        return self.job(id_)

    def until_counts(self, status: str, jobs: int) -> None:
        until(lambda: self.app.stats.counts().totals[status] == jobs, f"{jobs} jobs are {status}")

    def until_finished(self) -> None:
        """Until nothing is waiting or running any more."""
        until(lambda: all_ended(self.app), "every job ends")

    # The questions at the end.

    def close_down(self) -> None:
        """Stop every worker that is left: each ends with 0 and leaves nothing behind in the store."""
        left = [worker for worker in self.workers if not worker.ended]
        runners = sum(len(worker.runners()) for worker in left)
        until(lambda: len(self.inside.leases()) == runners, "leases of the dead are cleared away")
        for worker in left:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in left] == [0] * len(left)
        # Where it is unknown whether a process lives, one that was killed is listed for a minute.
        killed = {worker.pid for worker in self.workers} - {worker.pid for worker in left}
        assert {worker.pid for worker in self.app.workers.list()} <= killed
        assert self.inside.leases() == []
        assert not self.inside.is_left_behind()

    def check(self, *, again: Collection[str] = (), unfinished: Collection[str] = ()) -> None:
        """No job is lost, none ran twice but those that may have, and the store agrees with the effects."""
        jobs = {job.id: job for job in self.all_jobs()}
        assert set(self.ids) <= jobs.keys(), "an acknowledged job is lost"
        history = self.history
        history.check()
        assert history.runs().keys() <= jobs.keys(), "a job ran that was not enqueued"
        for id_, job in jobs.items():
            if id_ not in unfinished:
                self._check_completed(job, history, again=id_ in again)
        totals = {status: count for status, count in self.app.stats.counts().totals.items() if count}
        assert totals == Counter(str(job.status) for job in jobs.values()), "the counts are not a recount"
        self._check_outputs()

    def _check_completed(self, job: Job, history: History, *, again: bool) -> None:
        starts, ends = history.starts(job.id), history.ends(job.id)
        assert job.status == "completed", f"{job.type} {job.id} is {job.status}: {job.reason} {job.error}"
        assert again or len(starts) == 1, f"{job.type} {job.id} ran {len(starts)} times: {job.attempts}"
        assert ends, f"{job.type} {job.id} is completed, but never came to its end"
        assert ends[-1].attempt == job.attempt, "another attempt came to its end than the one that was recorded"
        numbers = [attempt.attempt for attempt in job.attempts]
        assert numbers == sorted(set(numbers)), "attempt numbers repeat"

    def _check_outputs(self) -> None:
        for process in self.processes.started:
            assert "is locked" not in process.output
            assert "Traceback" not in process.output


def answer(port: int, path: str) -> int:
    """The status of the health port; 0 without a listener."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def free_port() -> int:
    """A port without a listener just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
