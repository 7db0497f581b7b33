"""Result waiter: one task per event loop reads the jobs of all waiters on it, in batches.

It reads when a waiter starts, when the store signals that a job may have ended, and by polling, since signals may be
lost. During an outage of the store, waiters that have seen their job before keep waiting.
"""

import asyncio
import contextlib
import heapq
import math
import random
from collections.abc import Collection, Iterator, Sequence
from contextvars import Context

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.errors import JobNotFound, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import redact

MAX_AT_ONCE = 500
"""Jobs read in one call."""
LINGER_SECONDS = 10.0
"""How long the connection is kept for the next waiter."""


def pause_after(seconds: float, *, signalled: bool) -> float:
    """How long until the next poll for a job, after waiting for `seconds`.

    Where the store signals ends, polling only covers lost signals. Elsewhere it makes the wait up to an eighth
    longer, and less than a sixth where polls are merged.
    """
    return min(max(seconds, 0.05), 2.0) if signalled else min(max(seconds / 8, 0.01), 1.0)


class Wait:
    """One waiter for one job."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.job: Job | None = None
        """As last read."""
        self.trouble: StoreUnavailable | None = None
        """Why the last read failed."""
        self._error: Exception | None = None
        self._seen, self._over = asyncio.Event(), asyncio.Event()

    async def seen(self) -> Job:
        """The job now. Raises JobNotFound, and StoreUnavailable if it was never read."""
        await self._seen.wait()
        return self._answer()

    async def ended(self) -> Job:
        """The job when it has ended."""
        await self._over.wait()
        return self._answer()

    def look_again(self) -> None:
        """Require another read, unless this waiter has given up."""
        if self._error is None:
            self._seen.clear()

    def see(self, job: Job) -> None:
        """Set the job as read."""
        self.job, self.trouble = job, None
        self._seen.set()
        if job.finished:
            self._over.set()

    def read_failed(self, trouble: StoreUnavailable) -> None:
        """Handle a failed read: a waiter without a job gives up, and every waiter does if the error is permanent."""
        self.trouble = trouble
        if self.job is None or trouble.lasting:
            self.fail(trouble)
        else:
            self._seen.set()

    def fail(self, error: Exception) -> None:
        """Give up."""
        self._error = error
        self._seen.set()
        self._over.set()

    def _answer(self) -> Job:
        if self._error is not None:
            raise self._error
        assert self.job is not None
        return self.job


class ResultWaiter:
    """The waiters of one event loop, and the task that reads their jobs; it ends LINGER_SECONDS after the last."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loop = asyncio.get_running_loop()
        self._waits: dict[JobId, list[Wait]] = {}
        self._due: set[JobId] = set()
        self._again: dict[JobId, float] = {}
        self._order: list[tuple[float, JobId]] = []
        """The entries of `_again` by time; one that differs from `_again` is obsolete."""
        self._offset = random.random()
        """Spreads the polls of several processes."""
        self._news = asyncio.Event()
        self._watcher = store.signals.watch_completions(self._look_at)
        # Runs in its own context because it serves many callers.
        self._task = self._loop.create_task(self._run(), name="windlass results", context=Context())
        # A loop that stops without closing drops the task: no waiters are left.
        self._task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._ended = False

    @property
    def over(self) -> bool:
        """Whether it has ended, or its loop has."""
        return self._ended or self._loop.is_closed()

    @contextlib.contextmanager
    def waiting(self, job: JobId) -> Iterator[Wait]:
        """Wait for a job inside the context."""
        wait = Wait(self._loop.time())
        self._waits.setdefault(job, []).append(wait)
        self._look_at((job,))
        try:
            yield wait
        finally:
            self._leave(job, wait)

    async def read_again(self, job: JobId, wait: Wait) -> Job:
        """The job once more, after a timeout."""
        wait.look_again()
        self._look_at((job,))
        return await wait.seen()

    async def close(self) -> None:
        """End the task; on another thread's loop this takes effect a little later."""
        if self._loop is asyncio.get_running_loop():
            self._task.cancel()
            await asyncio.wait([self._task])
            return
        with contextlib.suppress(RuntimeError):  # that loop is closed
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _leave(self, job: JobId, wait: Wait) -> None:
        waits = self._waits[job]
        waits.remove(wait)
        if not waits:
            del self._waits[job]
            self._again.pop(job, None)
            self._watcher.unwatch(job)

    def _look_at(self, jobs: Collection[JobId]) -> None:
        self._due.update(jobs)
        self._news.set()

    async def _run(self) -> None:
        """Read jobs while there are waiters, and for LINGER_SECONDS more."""
        end: Exception = StoreUnavailable(f"{redact(self.store.address)}: this store is closed", lasting=True)
        try:
            while await self._pause() or self._waits:
                jobs = self._next()
                for at in range(0, len(jobs), MAX_AT_ONCE):
                    await self._look(jobs[at : at + MAX_AT_ONCE])
        except Exception as error:
            end = error
        finally:
            self._ended = True
            for wait in [each for waits in self._waits.values() for each in waits]:
                wait.fail(end)
            if not self._loop.is_closed():
                await self._watcher.close()

    async def _pause(self) -> bool:
        """Wait until a read is due; returns whether there is one."""
        order = self._order
        while order and self._again.get(order[0][1]) != order[0][0]:
            heapq.heappop(order)
        seconds = LINGER_SECONDS if not order else order[0][0] - self._loop.time()
        if not self._news.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        self._news.clear()
        return bool(self._due)

    def _next(self) -> list[JobId]:
        """The jobs with waiters whose read is due."""
        now, order = self._loop.time(), self._order
        while order and order[0][0] <= now:
            moment, job = heapq.heappop(order)
            if self._again.get(job) == moment:
                self._due.add(job)
        due, self._due = self._due, set()
        return [job for job in due if job in self._waits]

    async def _look(self, ids: Sequence[JobId]) -> None:
        try:
            jobs = await self.store.operator.get(ids)
            gone = [id_ for id_, job in zip(ids, jobs, strict=True) if job is None]
            outcomes = dict(zip(gone, await self.store.operator.outcomes(gone), strict=True)) if gone else {}
        except StoreUnavailable as trouble:
            for id_ in ids:
                for wait in self._waits.get(id_, ()):
                    wait.read_failed(trouble)
                self._look_later(id_)
            return
        for id_, job in zip(ids, jobs, strict=True):
            self._see(id_, job, outcomes.get(id_))

    def _see(self, id_: JobId, job: Job | None, outcome: str | None) -> None:
        for wait in self._waits.get(id_, ()):
            if job is None:
                wait.fail(JobNotFound(id_, outcome))
            else:
                wait.see(job)
        if job is not None and not job.finished and id_ in self._waits:
            self._watcher.watch(id_, job.queue)
            self._look_later(id_)

    def _look_later(self, id_: JobId) -> None:
        """Schedule the next poll, up to a quarter of the pause later: polls that are close together are merged."""
        if id_ in self._waits:
            now = self._loop.time()
            pause = pause_after(now - self._waits[id_][0].since, signalled=self._watcher.outage is None)
            step = pause / 4
            moment = (math.floor((now + pause) / step + self._offset) + 1 - self._offset) * step
            self._again[id_] = moment
            heapq.heappush(self._order, (moment, id_))
