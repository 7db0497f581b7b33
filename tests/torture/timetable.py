"""Two coordinators that share schedules and a clock, and what befalls them, by a seed."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tests.support.checker import Report, audit, read
from tests.support.inside import inside
from tests.support.processes import Process, Processes, freeze, let_pass, signal_all, until
from tests.support.seed import new_job
from tests.torture.rules import reported
from tests.torture.shared_clock import SharedClock
from windlass import WindlassError
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.schedules.schedule import Schedule, settings
from windlass.core.status import Status
from windlass.observe.history import HISTORY_FOLDER, History, record_calls
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import JobFilter

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
HOUR: Micros = 3600 * SECOND
SCHEDULES: dict[str, dict[str, Any]] = {
    "all": {"every": 10, "catch_up": "all"},
    "one": {"every": 1, "catch_up": "one"},
    "none": {"every": 1, "catch_up": "none"},
    "alone": {"every": 1, "overlap": False},
    "spread": {"every": 5, "jitter": 4},
    "berlin": {"cron": "* * * * * *", "tz": "Europe/Berlin"},
    "new york": {"cron": "*/2 * * * *", "tz": "America/New_York", "catch_up": "all"},
    "sydney": {"cron": "30 * * * * *", "tz": "Australia/Sydney", "catch_up": "none"},
}
"""Every rule, in zones that differ."""


class Timetable:
    """The schedules of one store, and the processes that fire them."""

    def __init__(self, folder: Path, url: str, seed: int, restart: Callable[[], None] | None) -> None:
        """`restart` is for a store that can be."""
        self._url, self._inside = url, inside(url, folder)
        self._dice = random.Random(seed)
        self._restart = restart
        self._histories = folder / "history"
        self._histories.mkdir()
        self._history = History(self._histories, "nemesis")
        self._clock_file = folder / "clock"
        self.clock = SharedClock(self._clock_file)
        self._furthest = self.clock.wall()
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.processes = Processes(folder, {HISTORY_FOLDER: str(self._histories), "PYTHONPATH": path})
        self._ask(self._lay_down)
        self.pair = [self._start(), self._start()]

    def _start(self) -> Process:
        words = ("-m", "tests.torture.coordinate", self._url, str(self._clock_file))
        process = self.processes.start("fires", *words)
        written = f"coordinator-{process.pid}-*.jsonl"
        until(lambda: any(self._histories.glob(written)), "the coordinator looks for what is due")
        return process

    async def _lay_down(self, store: Store) -> None:
        """Tell the store and the checker."""
        for name, options in SCHEDULES.items():
            made = await store.schedules.add(name, settings(new_job(type=name), **options))
            assert made is not None
            self._history.write("schedule", name=name, **reported(made))

    def torment(self, seconds: float) -> None:
        """One after the other is paused, killed or misled; between, both are there."""
        faults: list[tuple[int, Callable[[], None]]] = [
            (5, self._pause_one),
            (2, self._pause_both),
            (3, self._kill),
            (4, self._set_clock),
            (3, self._end_one_that_runs_alone),
            (2 if self._restart else 0, self._restart_store),
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            let_pass(self._dice.uniform(0.05, 0.4))
            self._furthest = max(self._furthest, self.clock.wall())
            (fault,) = self._dice.choices([f for _, f in faults], [weight for weight, _ in faults])
            fault()

    def audit(self) -> Report:
        """Peace: past the furthest moment, until nothing is due; then every process ends, and the recount."""
        self._furthest = max(self._furthest, self.clock.wall())
        self.clock.jump(self._furthest - self.clock.wall() + SECOND)
        self.clock.stop()
        until(lambda: not self._ask(lambda store: store.schedules.due(1)).schedules, "all that is due is fired")
        self.processes.end()
        for each in self._ask(lambda store: store.schedules.list()):
            facts = {"next_at": _next(each), "missed": each.missed, "skipped": each.skipped}
            self._history.write("final", name=each.name, now=self.clock.wall(), **facts)
        dump = self._ask(_dump)
        counts = {str(s): n for s, n in self._ask(lambda store: store.operator.counts()).totals.items()}
        return audit(read(self._histories), dump, counts)

    def _ask(self, call: Callable[[Store], Awaitable[T]]) -> T:
        async def asked() -> T:
            store = record_calls(open_store(self._url, clock=self.clock), "operator")
            try:
                return await call(store)
            finally:
                await store.close()

        with _history_at(self._histories):
            return asyncio.run(asked())

    # Faults.

    def _pause_one(self) -> None:
        self._pause([self._dice.choice(self.pair)])

    def _pause_both(self) -> None:
        self._pause(self.pair)

    def _pause(self, who: list[Process]) -> None:
        """For longer than a tick may be late, now and then."""
        pids = [each.pid for each in who]
        freeze(pids, self._inside.is_held_up)
        let_pass(self._dice.choice([0.1, 0.3, 1.2]))
        signal_all(pids, signal.SIGCONT)

    def _kill(self) -> None:
        place = self._dice.randrange(2)
        self.pair[place].kill()
        self.pair[place] = self._start()

    def _set_clock(self) -> None:
        """By an hour: ahead, or back for a while. What was fired is not fired again meanwhile."""
        if self._dice.random() < 0.5:
            self.clock.jump(HOUR)
            return
        self.clock.jump(-HOUR)
        let_pass(self._dice.uniform(0.1, 0.4))
        self.clock.jump(HOUR)

    def _end_one_that_runs_alone(self) -> None:
        """So that the next tick of it finds no coordinator."""

        async def cancel(store: Store) -> None:
            page = await store.operator.list(JobFilter(type="alone", status=(Status.PENDING,)), 10, None)
            await store.operator.cancel([job.id for job in page.items], "done")

        try:
            self._ask(cancel)
        except WindlassError as error:
            print(f"not cancelled: {error}")  # the store may be away

    def _restart_store(self) -> None:
        assert self._restart is not None
        self._restart()


class _history_at:
    """Our own calls belong into the history too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        os.environ[HISTORY_FOLDER] = str(self._folder)

    def __exit__(self, *_: object) -> None:
        del os.environ[HISTORY_FOLDER]


async def _dump(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await store.operator.list(JobFilter(), 1000, cursor)
        found += [msgspec.to_builtins(job) for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def _next(schedule: Schedule) -> Micros | None:
    return None if schedule.next_at is None else to_micros(schedule.next_at)
