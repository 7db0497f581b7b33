"""The tour: enqueue, work, kill a runner, die, retry, recount."""

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from windlass.client.app import App
from windlass.core.jobs.job import NewJob
from windlass.core.status import Status
from windlass.demo import tasks
from windlass.demo.recount import Recount, recount
from windlass.errors import ConfigError, WindlassError
from windlass.store.open import apart, discard, redact
from windlass.store.records import Counts

DEADLINE = 90.0
LEASE = "3s"


class DemoFailed(WindlassError):
    """The tour could not go on."""

    code = "demo_failed"


class Tour:
    """One run of the demo."""

    def __init__(self, folder: Path, store: str, said: str, console: Console) -> None:
        self._folder = folder
        self._store = store
        self._store_text = said
        self._console = console
        self._effects = folder / "effects.log"
        self._fixed = folder / "fixed"
        self._log = folder / "worker.log"
        self._app = App(store)
        self._accepted: dict[str, str] = {}
        self._until = time.monotonic() + DEADLINE

    def run(self) -> bool:
        """Whether no job was lost and every start is explained."""
        try:
            return self._run()
        finally:
            self._app.close()

    def _run(self) -> bool:
        if self._app.stats.counts().queues:
            raise ConfigError(f"{redact(self._store)} has jobs in it; the demo needs an empty store")
        self._say(self._store_text)
        self._enqueue()
        with self._worker() as worker:
            self._say("A worker starts: one supervisor, two runners, eight slots each.")
            self._work_through(worker)
            self._revive()
            self._say("SIGTERM: the worker drains and signs off.")
            worker.terminate()
            code = worker.wait(timeout=60)
        result = recount(self._app, self._accepted, self._effects)
        self._summary(result, code)
        return result.good and code == 0

    # The steps.

    def _enqueue(self) -> None:
        jobs = [tasks.welcome.job(user) for user in range(160)]
        jobs += [tasks.thumbnail.job(image) for image in range(120)]
        jobs += [tasks.sync.job(customer) for customer in range(36)]
        jobs += [tasks.report.job(pages) for pages in (12, 16)]
        jobs += [tasks.import_invoice.job(7)]
        jobs += [tasks.welcome.using(delay=1.5, priority=5).job(user) for user in range(1000, 1010)]
        self._accept(jobs)
        self._say(f"{len(jobs)} jobs enqueued with one call: stored and acknowledged.")

    def _accept(self, jobs: Sequence[NewJob]) -> None:
        for handle, job in zip(self._app.enqueue_many(jobs), jobs, strict=True):
            self._accepted[handle.id] = job.type

    def _work_through(self, worker: subprocess.Popen[bytes]) -> None:
        total = len(self._accepted)
        with self._bar() as bar:
            task = bar.add_task("working", total=total)

            def show(counts: Counts) -> None:
                totals = counts.totals
                waiting = totals[Status.PENDING] + totals[Status.SCHEDULED]
                note = f"{totals[Status.RUNNING]} running, {waiting} waiting, {totals[Status.FAILED]} to retry"
                if totals[Status.DEAD]:
                    note += f", [red]{totals[Status.DEAD]} dead[/]"
                bar.update(task, completed=totals[Status.COMPLETED] + totals[Status.DEAD], description=note)

            self._await(lambda c: c.totals[Status.COMPLETED] >= total // 4, show, worker)
            self._kill_a_runner(worker, bar.console)
            self._await(lambda c: c.totals[Status.COMPLETED] + c.totals[Status.DEAD] == total, show, worker)

    def _kill_a_runner(self, worker: subprocess.Popen[bytes], console: Console) -> None:
        runners = children_of(worker.pid)
        if not runners:
            raise DemoFailed("the worker has no runner to kill")
        os.kill(runners[0], signal.SIGKILL)
        console.print(f"  [bold red]kill -9[/] to runner {runners[0]}, in the middle of its work. Its jobs go back.")

    def _revive(self) -> None:
        dead = self._app.jobs.list(status="dead").items
        for job in dead:
            error = job.error.message if job.error else job.reason
            self._say(f"[red]dead[/] after {job.attempt} attempts: {job.type} - {error}")
        self._fixed.touch()
        revived = self._app.jobs.retry_all(status="dead")
        self._say(f"The bug is fixed; {revived} dead job retried, as `windlass dead retry --all` does it.")
        self._await(lambda c: c.totals[Status.COMPLETED] == len(self._accepted), lambda _: None, None)

    # Helpers.

    @contextlib.contextmanager
    def _worker(self) -> Iterator[subprocess.Popen[bytes]]:
        environment = {
            **os.environ,
            "WINDLASS_STORE": self._store,
            tasks.EFFECTS: str(self._effects),
            tasks.FIXED: str(self._fixed),
        }
        command = [sys.executable, "-m", "windlass", "worker", "windlass.demo.tasks:app"]
        command += ["--processes", "2", "--concurrency", "8", "--lease", LEASE]
        with self._log.open("wb") as log:
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield worker
        except BaseException:
            self._console.print(self._log.read_text()[-4000:], style="dim", markup=False)
            raise
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.wait()

    def _await(
        self,
        reached: Callable[[Counts], bool],
        show: Callable[[Counts], None],
        worker: subprocess.Popen[bytes] | None,
    ) -> None:
        while True:
            counts = self._app.stats.counts()
            show(counts)
            if reached(counts):
                return
            if worker is not None and worker.poll() is not None:
                raise DemoFailed(f"the worker ended with code {worker.returncode}")
            if time.monotonic() > self._until:
                left = ", ".join(f"{jobs} {status}" for status, jobs in counts.totals.items() if jobs)
                raise DemoFailed(f"not done after {DEADLINE:g} s: {left}")
            time.sleep(0.05)

    def _bar(self) -> Progress:
        return Progress(
            SpinnerColumn(),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
        )

    def _say(self, text: str) -> None:
        self._console.print(f"[bold]›[/] {text}")

    def _summary(self, result: Recount, code: int) -> None:
        table = Table(title="Recounted from the store and from what the handlers recorded", title_justify="left")
        for name in (
            "type",
            "enqueued",
            "completed",
            "lost",
            "starts",
            "failed",
            "run again",
        ):
            table.add_column(name, justify="left" if name == "type" else "right")
        for line in result.lines:
            numbers = (line.enqueued, line.completed, line.missing, line.starts, line.failed, line.again)
            table.add_row(line.type, *map(str, numbers))
        self._console.print(table)
        self._explain(result)
        if result.good and code == 0:
            self._say("[bold green]Nothing was lost.[/]")
            return
        for name in ("missing", "unfinished", "unexplained"):
            ids = getattr(result, name)
            if ids:
                self._say(f"[bold red]{len(ids)} {name}[/]: {', '.join(ids[:5])}")
        if code != 0:
            self._say(f"[bold red]the worker ended with code {code}[/]")

    def _explain(self, result: Recount) -> None:
        """Name jobs that started twice: they were running in the killed runner."""
        again = result.interrupted
        if again:
            self._say(f"{len(again)} jobs were running in the killed runner, and ran again. The first of them:")
        for job in again[:3]:
            endings = ", then ".join(f"attempt {each.attempt} {each.outcome}" for each in job.attempts)
            self._console.print(f"    {job.type} {job.id[-12:]}: {endings}")


def run_demo(store: str | None) -> bool:
    """The tour in a temporary folder; whether all went well."""
    console = Console(highlight=False)
    with (
        tempfile.TemporaryDirectory(prefix="windlass-demo-") as folder,
        temporary_store(store, Path(folder)) as (at, said),
    ):
        return Tour(Path(folder), at, said, console).run()


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if children.exists():
        return [int(word) for word in children.read_text().split()]
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
    return [child for child, parent in pairs if parent == pid]


@contextlib.contextmanager
def temporary_store(store: str | None, folder: Path) -> Iterator[tuple[str, str]]:
    """An address and its description: a temporary file, a schema or prefix of the demo's own, or the given store."""
    if store is None:
        address = f"sqlite:///{folder}/demo.db"
        yield address, f"The store is one file: [cyan]{address}[/]"
        return
    name = f"windlass_demo_{secrets.token_hex(4)}"
    own = apart(store, name)
    if own is None:
        yield store, f"The store is [cyan]{redact(store)}[/]"
        return
    corner = own[len(store) + 1 :].partition("=")[0]
    try:
        yield own, f"The store is a {corner} of its own, [cyan]{name}[/], in [cyan]{redact(store)}[/]"
    finally:
        asyncio.run(discard(own))
