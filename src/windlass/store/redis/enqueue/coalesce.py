"""Batches enqueues per event loop: many small ones at once cost what one large one does."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from weakref import WeakKeyDictionary

import msgspec

from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import StoreUnavailable
from windlass.store.drive import running_loop
from windlass.store.redis.connection.access import Access
from windlass.store.redis.enqueue.enqueue import enqueue
from windlass.store.redis.enqueue.large_batch import MAX_WEIGHT, weight_of

MAX_COALESCED = MAX_WEIGHT // 2
"""By weight: some 2 ms for the server."""
MAX_TEXT = 250_000


class WaitingEnqueue(msgspec.Struct, frozen=True):
    """A caller's jobs, until a call takes them along."""

    jobs: Sequence[NewJob]
    answers: "asyncio.Future[list[Enqueued]]"


class EnqueueCoalescer:
    """Batches enqueues of one store view: while a call for a queue is in flight, further ones for it are collected.

    A lone enqueue is never delayed. Each gets its own answers, or its own error.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._gathering: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, deque[WaitingEnqueue]]] = (
            WeakKeyDictionary()
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store all of them or none."""
        loop = running_loop()
        if loop is None or not _can_coalesce(jobs):
            return await enqueue(self._access, jobs)
        queue, gathering = jobs[0].queue, self._gathering.setdefault(loop, {})
        if queue in gathering:
            answers: asyncio.Future[list[Enqueued]] = loop.create_future()
            gathering[queue].append(WaitingEnqueue(jobs, answers))
            return await answers
        gathering[queue] = deque()
        try:
            return await enqueue(self._access, jobs)
        finally:
            self._start_next(loop, queue)

    def _start_next(self, loop: asyncio.AbstractEventLoop, queue: str) -> None:
        """Start the next group of enqueues that gathered during the last call."""
        gathering = self._gathering[loop]
        group = _take(gathering[queue])
        if not group:
            del gathering[queue]
            return
        carrier = loop.create_task(self._run_group(loop, queue, group))
        self._tasks.add(carrier)
        carrier.add_done_callback(self._tasks.discard)

    async def _run_group(self, loop: asyncio.AbstractEventLoop, queue: str, group: list[WaitingEnqueue]) -> None:
        try:
            await self._enqueue_group(group)
        finally:
            for each in group:
                each.answers.cancel()  # only if it has none: the loop ends
            self._start_next(loop, queue)

    async def _enqueue_group(self, group: Sequence[WaitingEnqueue]) -> None:
        try:
            answers = iter(await enqueue(self._access, [job for each in group for job in each.jobs]))
        except StoreUnavailable as error:
            for each in group:
                _fail(each, error)
        except Exception:
            # One of them was refused, and nothing is stored: each is tried alone.
            for each in group:
                await self._enqueue_alone(each)
        else:
            for each in group:
                mine = list(islice(answers, len(each.jobs)))
                if not each.answers.done():
                    each.answers.set_result(mine)

    async def _enqueue_alone(self, one: WaitingEnqueue) -> None:
        try:
            answers = await enqueue(self._access, one.jobs)
        except Exception as error:
            _fail(one, error)
        else:
            if not one.answers.done():
                one.answers.set_result(answers)


def _can_coalesce(jobs: Sequence[NewJob]) -> bool:
    if not 0 < len(jobs) <= MAX_COALESCED:
        return False
    return all(job.queue == jobs[0].queue and not job.parents for job in jobs)


def _take(waiting: deque[WaitingEnqueue]) -> list[WaitingEnqueue]:
    """The next group, as many as one call takes; cancelled callers are left out."""
    group: list[WaitingEnqueue] = []
    weight = text = 0
    while waiting:
        each = waiting[0]
        weight += sum(map(weight_of, each.jobs))
        text += sum(len(job.payload) for job in each.jobs)
        if group and (weight > MAX_COALESCED or text > MAX_TEXT):
            break
        waiting.popleft()
        if not each.answers.done():
            group.append(each)
    return group


def _fail(one: WaitingEnqueue, error: Exception) -> None:
    if not one.answers.done():
        one.answers.set_exception(error)
