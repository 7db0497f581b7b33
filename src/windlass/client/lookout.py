"""A lookout: for all who wait for jobs on one event loop, one task looks, at all of their jobs at once.

It looks when somebody comes, when the store tells that a job may have ended, and now and then besides, since what is
told may be lost. A store that is away is waited for, by whoever has seen his job there before.
"""

import asyncio
import contextlib
import heapq
import math
import random
from collections.abc import Collection, Iterator, Sequence
from contextvars import Context

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.errors import JobNotFound, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import redact

MOST_AT_ONCE = 500
"""So many jobs are looked at in one call."""
LINGER_SECONDS = 10.0
"""Somebody who waits for one job after the other finds the connection still there."""


def pause_after(seconds: float, *, told: bool) -> float:
    """How long until the next look at a job that somebody has waited for so long already.

    Where the store tells of ends this is only for what was lost; else it makes the wait an eighth longer at most.
    """
    return min(max(seconds, 0.05), 2.0) if told else min(max(seconds / 8, 0.01), 1.0)


class Wait:
    """One who waits for one job."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.job: Job | None = None
        """As it was seen last."""
        self.trouble: StoreUnavailable | None = None
        """Why it could not be looked at since."""
        self._error: Exception | None = None
        self._seen, self._over = asyncio.Event(), asyncio.Event()

    async def seen(self) -> Job:
        """As it is now. Raises JobNotFound, and StoreUnavailable if the store is away before it was seen at all."""
        await self._seen.wait()
        return self._answer()

    async def ended(self) -> Job:
        """When it has ended."""
        await self._over.wait()
        return self._answer()

    def look_again(self) -> None:
        """What was seen until now does not count."""
        self._seen.clear()

    def see(self, job: Job) -> None:
        """It was looked at."""
        self.job, self.trouble = job, None
        self._seen.set()
        if job.finished:
            self._over.set()

    def put_off(self, trouble: StoreUnavailable) -> None:
        """It could not be looked at: who has seen nothing yet gives up, and everybody does if nothing will help."""
        self.trouble = trouble
        if self.job is None or trouble.lasting:
            self.fail(trouble)
        else:
            self._seen.set()

    def fail(self, error: Exception) -> None:
        """There is nothing to wait for."""
        self._error = error
        self._seen.set()
        self._over.set()

    def _answer(self) -> Job:
        if self._error is not None:
            raise self._error
        assert self.job is not None
        return self.job


class Lookout:
    """Those who wait on one event loop, and the task that looks for them. It ends when nobody comes for a while."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loop = asyncio.get_running_loop()
        self._waits: dict[JobId, list[Wait]] = {}
        self._due: set[JobId] = set()
        self._again: dict[JobId, float] = {}
        self._order: list[tuple[float, JobId]] = []
        """Of `_again`, by time; an entry that says otherwise is not valid any more."""
        self._offset = random.random()
        """Processes do not all look at the same moments."""
        self._news = asyncio.Event()
        self._vigil = store.signals.vigil(self._look_at)
        # In a context of its own: it looks for others too.
        self._task = self._loop.create_task(self._run(), name="windlass results", context=Context())
        # A loop that just stops takes it along: nobody waits there any more.
        self._task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._ended = False

    @property
    def over(self) -> bool:
        """Whether it has ended, or its loop has."""
        return self._ended or self._loop.is_closed()

    @contextlib.contextmanager
    def waiting(self, job: JobId) -> Iterator[Wait]:
        """Wait for a job, for as long as the context lasts."""
        wait = Wait(self._loop.time())
        self._waits.setdefault(job, []).append(wait)
        self._look_at((job,))
        try:
            yield wait
        finally:
            self._leave(job, wait)

    async def last_look(self, job: JobId, wait: Wait) -> Job:
        """At a job for which the time is over."""
        wait.look_again()
        self._look_at((job,))
        return await wait.seen()

    async def close(self) -> None:
        """Nobody waits here any more; on a loop of another thread it ends a little later."""
        if self._loop is asyncio.get_running_loop():
            self._task.cancel()
            await asyncio.wait([self._task])
            return
        with contextlib.suppress(RuntimeError):  # that loop is over
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _leave(self, job: JobId, wait: Wait) -> None:
        waits = self._waits[job]
        waits.remove(wait)
        if not waits:
            del self._waits[job]
            self._again.pop(job, None)
            self._vigil.unwatch(job)

    def _look_at(self, jobs: Collection[JobId]) -> None:
        self._due.update(jobs)
        self._news.set()

    async def _run(self) -> None:
        """Look, as long as anybody waits, and a little longer."""
        end: Exception = StoreUnavailable(f"{redact(self.store.address)}: this store is closed", lasting=True)
        try:
            while await self._pause() or self._waits:
                jobs = self._next()
                for at in range(0, len(jobs), MOST_AT_ONCE):
                    await self._look(jobs[at : at + MOST_AT_ONCE])
        except Exception as error:
            end = error
        finally:
            self._ended = True
            for wait in [each for waits in self._waits.values() for each in waits]:
                wait.fail(end)
            if not self._loop.is_closed():
                await self._vigil.close()

    async def _pause(self) -> bool:
        """Until there is something to look at: whether there is."""
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
        """Those that somebody waits for, and that are to be looked at now."""
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
                    wait.put_off(trouble)
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
            self._vigil.watch(id_, job.queue)
            self._look_later(id_)

    def _look_later(self, id_: JobId) -> None:
        """The next look, if nothing is told before; those that would come soon after one another come together."""
        if id_ in self._waits:
            now = self._loop.time()
            pause = pause_after(now - self._waits[id_][0].since, told=self._vigil.silence is None)
            step = pause / 4
            moment = (math.floor((now + pause) / step + self._offset) + 1 - self._offset) * step
            self._again[id_] = moment
            heapq.heappush(self._order, (moment, id_))
