"""A runner's slots: what runs now, and the few jobs that wait for a slot.

An `async def` job runs in an asyncio task (`handlers/start.py`), a `def` job in a dedicated thread. A job that
wants or needs a process of its own runs in a handler process. All count against the same number of slots.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable

from windlass.core.events import Emit, InternalError
from windlass.core.jobs.outcome import Crashed, Outcome, Raised, Requeued
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import SECOND, Micros
from windlass.observe.figures import Figures
from windlass.store.clock import since_boot
from windlass.worker.handlers.attempt import describe_internal_error, report
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.start import STARTS_EAGERLY, Threads, start_attempt
from windlass.worker.handlers.work import Halt, Work
from windlass.worker.shared_table import SharedTable
from windlass.worker.store_retry import FailureReports, describe_error

STREAK = 50
"""Starts in a row before the event loop runs other tasks: handlers that never wait end as they are started, and must
not delay settlements and claims."""

STARTING, ENDING = "starting a thread", "ending an attempt"
THREAD_CANCEL_GRACE: Micros = 10 * SECOND
"""How long a thread may take to react to `ctx.cancelled`."""
PROCESS_CANCEL_GRACE: Micros = SECOND
"""The same for a handler process: it can be killed, so the wait is short."""
STUCK_AFTER: Micros = 5 * SECOND
"""After this time a cancelled `async def` handler counts as stuck."""


class Slots:
    """Starts jobs, best first, while slots are free and the lease is valid."""

    def __init__(
        self,
        concurrency: int,
        table: SharedTable,
        processes: HandlerProcessPool,
        figures: Figures | None = None,
        *,
        retry: Callable[[Work], StoredPolicy],
        ended: Callable[[Work, Outcome], None],
        emit: Emit,
    ) -> None:
        self.concurrency = concurrency
        self._figures = figures
        self._processes = processes
        self._retry = retry
        self.running = 0
        self.ended = 0
        self.active: set[Work] = set()
        """The jobs whose handlers are running."""
        self.lost = False
        """Whether an internal error lost an outcome: its job is requeued when this process ends."""
        self.changed = asyncio.Event()
        """Set when slots become free or waiting jobs fewer."""
        self._table = table
        self._report = ended
        self._emit = emit
        self._buffer: deque[Work] = deque()
        self._threads = Threads(concurrency, self._ended)
        self._failures = FailureReports(emit)
        self._taken: list[Work] = []
        self._feeding = False
        self._now: Micros = 0
        self._suspended: Micros = 0
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    @property
    def buffered(self) -> int:
        """Jobs that are held and have not started."""
        return len(self._buffer)

    @property
    def free(self) -> int:
        """Slots in which a job could start at once."""
        return max(0, self.concurrency - self.running - len(self._buffer))

    @property
    def oldest(self) -> Work | None:
        """The job that has waited longest for a slot."""
        return self._buffer[0] if self._buffer else None

    def add(self, works: Iterable[Work]) -> None:
        """Start these as slots become free."""
        self._buffer.extend(works)
        self.feed()

    def feed(self) -> None:
        """Fill free slots."""
        if self._feeding:
            return  # a handler ended as it was started, or a feed is scheduled
        self._feeding = True
        try:
            for number in range(STREAK):
                if self.running >= self.concurrency or not self._buffer:
                    return
                # Where a start only schedules a task, clock and lease are the same for the whole streak.
                if (STARTS_EAGERLY or not number) and not self._may_start():
                    return
                if (work := self._next()) is None:
                    return
                self._start(work)
        finally:
            self._feeding = False
            self.changed.set()
        self._feed_soon()

    def _feed_soon(self) -> None:
        """Schedule one feed for all attempts that end in the same iteration of the loop."""
        if not self._feeding:
            self._feeding = True
            self._loop.call_soon(self._feed_again)

    def _feed_again(self) -> None:
        self._feeding = False
        self.feed()

    def _start(self, work: Work) -> None:
        self.running += 1
        if self._figures is not None:
            self._figures.count_started(work.claimed.queue, work.claimed.type)
        try:
            if work.in_process:
                start_attempt(work, self._context.copy(), self._ended, self._in_process)
            elif work.definition.is_async:
                start_attempt(work, self._context.copy(), self._ended)
            else:
                self._threads.put(work)
        except Exception as error:
            # Not caused by the job: retried like any failure.
            self._ended(work, Raised(error, report(error)))

    def take_unstarted(self) -> list[Work]:
        """Remove and return everything that has not started."""
        works = list(self._buffer)
        self._buffer.clear()
        return works

    def taken_away(self) -> list[Work]:
        """Jobs that the supervisor requeued while they waited here."""
        works, self._taken = self._taken, []
        return works

    def halt(self, work: Work, why: Halt) -> None:
        """Cancel an `async def` handler, kill a handler process; a thread cannot be stopped from inside."""
        work.halt(why, self._table.active_time(since_boot()))
        if work.in_process:
            self._processes.kill(work)
        elif work.task is not None:
            work.task.cancel()

    def close(self) -> None:
        """Interrupt running handlers, and let idle threads end; nothing can be started any more."""
        for work in list(self.active):
            self.halt(work, Halt.DRAIN)
        self._threads.close()

    async def idle(self) -> None:
        """Wait until nothing runs or is about to start."""
        while self.running or self._feeding:
            self.changed.clear()
            await self.changed.wait()

    def _may_start(self) -> bool:
        """Read the clock; returns whether the lease is valid."""
        now = self._now = since_boot()
        self._suspended = self._table.suspended(now)
        return self._table.may_start(now)

    def _next(self) -> Work | None:
        """The next job that may start now, marked as started."""
        buffer, table, now = self._buffer, self._table, self._now
        while buffer and (buffer[0].definition.is_async or self._has_thread(buffer[0])):
            work = buffer.popleft()
            # A handler process may load the app first, which does not count as handler time.
            work.started_on = None if work.in_process else now
            work.suspended = self._suspended
            if table.start(work.index, now, work.deadline):
                self.active.add(work)
                return work
            work.started_on = None
            table.end(work.index)
            self._taken.append(work)
        return None

    def _has_thread(self, work: Work) -> bool:
        """Whether there is a thread for a `def` job; else it waits, and is requeued if that takes long."""
        if work.in_process:
            return True
        try:
            self._threads.make_ready()
        except RuntimeError as error:
            self._failures.failed(STARTING, describe_error(error))
            return False
        self._failures.succeeded(STARTING)
        return True

    def _begin(self, work: Work) -> None:
        now = work.started_on = since_boot()
        work.suspended = self._table.suspended(now)
        self._table.start(work.index, now, work.deadline)

    async def _in_process(self, work: Work) -> Outcome:
        try:
            work.outcome = await self._processes.run(work, self._retry(work), self._begin)
        except Exception as error:
            work.outcome = Crashed(report(error))
        return work.outcome

    def _ended(self, work: Work, outcome: Outcome) -> None:
        """A handler has returned: its slot is free, also if the following steps fail."""
        self.ended += 1
        self.active.discard(work)
        try:
            if not isinstance(outcome, Requeued):
                self._table.end(work.index)
            self._report(work, outcome)
        except Exception as error:
            self.lost = True
            self._emit(InternalError(doing=ENDING, problem=describe_internal_error(error), job=work.claimed.id))
        finally:
            self.running -= 1
            self._feed_soon()


class Deadlines:
    """Halts handlers past their timeout or cancel grace, and finds those that do not end."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._given_up: set[Work] = set()

    def sweep(self, now: Micros) -> list[Work]:
        """Halt handlers at `now` in active time, and return those that cannot be halted, each once."""
        for work in list(self._slots.active):
            if work.halted is None and (why := _due(work, now)) is not None:
                self._slots.halt(work, why)
        self._given_up &= self._slots.active
        stuck = [work for work in self._slots.active if _is_stuck(work, now) and work not in self._given_up]
        self._given_up.update(stuck)
        return stuck


def _due(work: Work, now: Micros) -> Halt | None:
    if 0 < work.deadline <= now:
        return Halt.TIMEOUT
    if work.cancelled_on is not None and now >= work.cancelled_on + _patience(work):
        return Halt.CANCEL
    return None


def _patience(work: Work) -> Micros:
    if work.in_process:
        return PROCESS_CANCEL_GRACE
    return THREAD_CANCEL_GRACE if work.task is None else 0


def _is_stuck(work: Work, now: Micros) -> bool:
    """Whether it was halted and does not end: a thread cannot be stopped, a coroutine gets STUCK_AFTER."""
    if work.halted in (None, Halt.DRAIN) or work.in_process:
        return False
    return work.task is None or now >= work.halted_on + STUCK_AFTER
