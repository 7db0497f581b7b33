"""A runner's slots: what runs now, and the few jobs that wait for a slot.

An `async def` job runs in a lane: a task that goes on to the next job without being made anew, so that a job costs
no task of its own. A `def` job runs in a dedicated thread. A job that wants or needs a process of its own runs in a
cell. All count against the same number of slots.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from windlass.core.outcome import Crashed, HandedBack, Outcome
from windlass.core.retry import StoredPolicy
from windlass.store.clock import since_boot
from windlass.worker.cells import Cells
from windlass.worker.run import report, run_async
from windlass.worker.table import Table
from windlass.worker.threads import Threads
from windlass.worker.work import Halt, Work

STREAK = 50
"""After so many jobs in a row the lanes let the rest of the loop run: handlers that never wait must not keep outcomes
from being written, and the next jobs from being claimed meanwhile."""


class Slots:
    """Starts jobs, best first, while slots are free and the lease is valid."""

    def __init__(
        self,
        concurrency: int,
        table: Table,
        cells: Cells,
        *,
        retry: Callable[[Work], StoredPolicy],
        ended: Callable[[Work, Outcome], None],
    ) -> None:
        self.concurrency = concurrency
        self._cells = cells
        self._retry = retry
        self.running = 0
        self.ended = 0
        self.active: set[Work] = set()
        """The jobs whose handlers are running."""
        self.changed = asyncio.Event()
        """Set whenever a slot became free or the waiting ones fewer."""
        self._table = table
        self._report = ended
        self._buffer: deque[Work] = deque()
        self._threads = Threads(concurrency, self._thread_ended)
        self._lanes: set[asyncio.Task[None]] = set()
        self._taken: list[Work] = []
        self._streak = 0
        self._clean = contextvars.copy_context()

    @property
    def buffered(self) -> int:
        """Jobs that are held and have not started."""
        return len(self._buffer)

    @property
    def free(self) -> int:
        """Slots that a job could start in at once."""
        return max(0, self.concurrency - self.running - len(self._buffer))

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
            if work.apart:
                self._spawn(self._in_cell(work))
            elif work.definition.is_async:
                self._spawn(self._lane(work))
            else:
                self._threads.put(work)

    def _spawn(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job, context=self._clean.copy())
        self._lanes.add(task)
        task.add_done_callback(self._lanes.discard)

    def take_unstarted(self) -> list[Work]:
        """Everything that has not started, which nobody will start here any more."""
        works = list(self._buffer)
        self._buffer.clear()
        return works

    def taken_away(self) -> list[Work]:
        """Jobs that the supervisor handed back while they waited here."""
        works, self._taken = self._taken, []
        return works

    def halt(self, work: Work, why: Halt) -> None:
        """Cancel an `async def` handler, kill a cell; a thread cannot be stopped from inside."""
        work.halt(why)
        if work.task is not None:
            work.task.cancel()
        elif work.apart:
            self._cells.kill(work)

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
            # A cell may have to load the app first, which the handler's time does not count.
            work.started_on = None if work.apart else now
            if self._table.start(work.index, now, work.deadline):
                self.active.add(work)
                return work
            work.started_on = None
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
            self._streak += 1
            if self._streak >= STREAK and not await self._breathe():
                break
            following = self._follow(lane)
        self._free_slot()

    async def _breathe(self) -> bool:
        """Let everybody else have the loop once; until that is over, other lanes give way after each job too."""
        if self._streak == STREAK:
            asyncio.get_running_loop().call_soon(self._go_on)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return False  # of a handler that is over: the lane is not used again, its slot is
        return True

    def _go_on(self) -> None:
        self._streak = 0

    def _follow(self, lane: asyncio.Task[None]) -> Work | None:
        """The next job for this lane; a `def` job takes the slot to a thread instead.

        A lane in which a handler left something behind (a context variable, a cancellation that is still to come) is
        not used again: the next job must not find it.
        """
        if lane.cancelling() or contextvars.copy_context() != self._clean:
            return None
        following = self._buffer[0] if self._buffer else None
        return self._next() if following and following.definition.is_async and not following.apart else None

    def _begin(self, work: Work) -> None:
        work.started_on = since_boot()
        self._table.start(work.index, work.started_on, work.deadline)

    async def _in_cell(self, work: Work) -> None:
        try:
            outcome = await self._cells.run(work, self._retry(work), self._begin)
        except Exception as error:
            outcome = Crashed(report(error))
        self._end(work, outcome)
        self._free_slot()

    def _thread_ended(self, work: Work, outcome: Outcome) -> None:
        self._end(work, outcome)
        self._free_slot()

    def _free_slot(self) -> None:
        self.running -= 1
        self.changed.set()
        self.feed()

    def _end(self, work: Work, outcome: Outcome) -> None:
        self.ended += 1
        self.active.discard(work)
        if not isinstance(outcome, HandedBack):
            self._table.end(work.index)
        self._report(work, outcome)
