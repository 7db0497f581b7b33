"""Hand-ins that wait together go together: many small ones at a time cost what one large one does."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from weakref import WeakKeyDictionary

import msgspec

from windlass.core.job import Enqueued, NewJob
from windlass.errors import StoreUnavailable
from windlass.store.drive import running_loop
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import MOST_WEIGHT, weight_of
from windlass.store.redis.enqueue import enqueue

MOST_JOINED = MOST_WEIGHT // 2
"""By weight: some 2 ms for the server."""
MOST_TEXT = 250_000


class Waiting(msgspec.Struct, frozen=True):
    """A caller's jobs, until a call takes them along."""

    jobs: Sequence[NewJob]
    answers: "asyncio.Future[list[Enqueued]]"


class Joint:
    """The way in for one view of the store. While a call for a queue is under way, those for the same one gather.

    A caller who is alone waits for nobody. Each gets its own answers, or its own error, as if it had come alone.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, deque[Waiting]]] = WeakKeyDictionary()
        self._carriers: set[asyncio.Task[None]] = set()

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store all of them or none."""
        loop = running_loop()
        if loop is None or not _may_join(jobs):
            return await enqueue(self._access, jobs)
        queue, gathering = jobs[0].queue, self._under_way.setdefault(loop, {})
        if queue in gathering:
            answers: asyncio.Future[list[Enqueued]] = loop.create_future()
            gathering[queue].append(Waiting(jobs, answers))
            return await answers
        gathering[queue] = deque()
        try:
            return await enqueue(self._access, jobs)
        finally:
            self._go_on(loop, queue)

    def _go_on(self, loop: asyncio.AbstractEventLoop, queue: str) -> None:
        """A call is over: those who gathered meanwhile are next, in their order."""
        gathering = self._under_way[loop]
        group = _take(gathering[queue])
        if not group:
            del gathering[queue]
            return
        carrier = loop.create_task(self._carry(loop, queue, group))
        self._carriers.add(carrier)
        carrier.add_done_callback(self._carriers.discard)

    async def _carry(self, loop: asyncio.AbstractEventLoop, queue: str, group: list[Waiting]) -> None:
        try:
            await self._together(group)
        finally:
            for each in group:
                each.answers.cancel()  # only if it has none: the loop ends
            self._go_on(loop, queue)

    async def _together(self, group: Sequence[Waiting]) -> None:
        try:
            answers = iter(await enqueue(self._access, [job for each in group for job in each.jobs]))
        except StoreUnavailable as error:
            for each in group:
                _fail(each, error)
        except Exception:
            # One of them was refused, and so nothing is stored: it shows whose fault it was.
            for each in group:
                await self._apart(each)
        else:
            for each in group:
                mine = list(islice(answers, len(each.jobs)))
                if not each.answers.done():
                    each.answers.set_result(mine)

    async def _apart(self, one: Waiting) -> None:
        try:
            answers = await enqueue(self._access, one.jobs)
        except Exception as error:
            _fail(one, error)
        else:
            if not one.answers.done():
                one.answers.set_result(answers)


def _may_join(jobs: Sequence[NewJob]) -> bool:
    if not 0 < len(jobs) <= MOST_JOINED:
        return False
    return all(job.queue == jobs[0].queue and not job.parents for job in jobs)


def _take(waiting: deque[Waiting]) -> list[Waiting]:
    """The first of them, as many as one call takes well; who has been cancelled is not handed in."""
    group: list[Waiting] = []
    weight = text = 0
    while waiting:
        each = waiting[0]
        weight += sum(map(weight_of, each.jobs))
        text += sum(len(job.payload) for job in each.jobs)
        if group and (weight > MOST_JOINED or text > MOST_TEXT):
            break
        waiting.popleft()
        if not each.answers.done():
            group.append(each)
    return group


def _fail(one: Waiting, error: Exception) -> None:
    if not one.answers.done():
        one.answers.set_exception(error)
