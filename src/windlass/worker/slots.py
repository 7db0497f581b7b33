"""A runner's slots: what runs now, and the few jobs that wait for a slot.

An `async def` job runs in a lane: a task that goes on to the next job without being made anew, so that a job costs
no task of its own. A `def` job runs in a dedicated thread. Both count against the same number of slots.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable

from windlass.core.outcome import HandedBack, Outcome
from windlass.store.clock import since_boot
from windlass.worker.run import run_async
from windlass.worker.table import Table
from windlass.worker.threads import Threads
from windlass.worker.work import Work


class Slots:
    """Starts jobs, best first, while slots are free and the lease is valid."""

    def __init__(self, concurrency: int, table: Table, ended: Callable[[Work, Outcome], None]) -> None:
        self.concurrency = concurrency
        self.running = 0
        self.ended = 0
        self.changed = asyncio.Event()
        """Set whenever a slot became free or the waiting ones fewer."""
        self._table = table
        self._report = ended
        self._buffer: deque[Work] = deque()
        self._threads = Threads(concurrency, self._thread_ended)
        self._lanes: set[asyncio.Task[None]] = set()
        self._taken: list[Work] = []
        self._clean = contextvars.copy_context()

    @property
    def buffered(self) -> int:
        """Jobs that are held and have not started."""
        return len(self._buffer)

    @property
    def oldest(self) -> Work | None:
        """The job that waits longest for a slot."""
        return self._buffer[0] if self._buffer else None

    def add(self, works: Iterable[Work]) -> None:
        """Start these as slots become free."""
        self._buffer.extend(works)
        self.feed()

    def feed(self) -> None:
        """Fill free slots."""
        while self.running < self.concurrency and (work := self._next()) is not None:
            self.running += 1
            if work.definition.is_async:
                lane = asyncio.create_task(self._lane(work), context=self._clean.copy())
                self._lanes.add(lane)
                lane.add_done_callback(self._lanes.discard)
            else:
                self._threads.put(work)

    def take_unstarted(self) -> list[Work]:
        """Everything that has not started, which nobody will start here any more."""
        works = list(self._buffer)
        self._buffer.clear()
        return works

    def taken_away(self) -> list[Work]:
        """Jobs that the supervisor handed back while they waited here."""
        works, self._taken = self._taken, []
        return works

    def break_off(self, works: Iterable[Work]) -> None:
        """Cancel running `async def` handlers; threads cannot be stopped from inside."""
        for work in works:
            if work.task is not None:
                work.broken_off = True
                work.task.cancel()

    async def idle(self) -> None:
        """Until nothing runs."""
        while self.running:
            self.changed.clear()
            await self.changed.wait()

    def _next(self) -> Work | None:
        """The next job that may start here and now, marked as started."""
        now = since_boot()
        while self._buffer and self._table.may_start(now):
            work = self._buffer.popleft()
            self.changed.set()
            if self._table.start(work.index, now):
                work.started_on = now
                return work
            self._table.end(work.index)
            self._taken.append(work)
        return None

    async def _lane(self, work: Work) -> None:
        lane = asyncio.current_task()
        assert lane is not None
        following: Work | None = work
        while following is not None:
            following.task = lane
            outcome = await run_async(following)
            following.task = None
            self._end(following, outcome)
            following = self._follow(lane)
        self._free_slot()

    def _follow(self, lane: asyncio.Task[None]) -> Work | None:
        """The next job for this lane; a `def` job takes the slot to a thread instead.

        A lane in which a handler left something behind (a context variable, a cancellation that is still to come) is
        not used again: the next job must not find it.
        """
        if lane.cancelling() or contextvars.copy_context() != self._clean:
            return None
        return self._next() if self._buffer and self._buffer[0].definition.is_async else None

    def _thread_ended(self, work: Work, outcome: Outcome) -> None:
        self._end(work, outcome)
        self._free_slot()

    def _free_slot(self) -> None:
        self.running -= 1
        self.changed.set()
        self.feed()

    def _end(self, work: Work, outcome: Outcome) -> None:
        self.ended += 1
        if not isinstance(outcome, HandedBack):
            self._table.end(work.index)
        self._report(work, outcome)
