"""enqueue: store new jobs, all or none."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.drive import running_loop
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import after_storing
from windlass.store.redis.dependencies.dependents import notify_after_enqueue
from windlass.store.redis.dependencies.parents import with_checked_parents
from windlass.store.redis.operator.read_records import known_ids
from windlass.store.redis.operator.replace import MAX_TRIES, contended
from windlass.store.redis.verbs.batch import EnqueueBatch, ParentKeyTaken, to_batch
from windlass.store.redis.verbs.large_batch import MAX_WEIGHT, enqueue_large, portions, weight_of

OTHER = b"other"
"""The reply of enqueue_plain.lua if the queue or a job is not plain."""


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Enqueue jobs. Those with parents are checked first, and again if a parent's key was taken meanwhile."""
    if not jobs:
        return []
    if len(jobs) == 1 and jobs[0].fresh and not jobs[0].parents:
        return await _enqueue_in(access, jobs[0].queue, jobs)
    if not any(job.parents for job in jobs):
        return await _enqueue(access, jobs)
    stored: set[str] = set()
    with after_storing(stored):
        for _ in range(MAX_TRIES):
            try:
                return await _enqueue(access, await with_checked_parents(access, jobs))
            except ParentKeyTaken as error:
                stored |= error.stored
        raise contended(access, jobs[0].id)


async def _enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Enqueue checked jobs; a batch for one queue is a single call, if it fits and its ids are new."""
    queue = jobs[0].queue
    if all(job.queue == queue and job.fresh for job in jobs):
        return await _enqueue_in(access, queue, jobs)
    # Ids that this process made for these jobs are new.
    elsewhere = await known_ids(access, [job for job in jobs if not job.fresh], elsewhere=True)
    later = _repeated_elsewhere(jobs)
    if not elsewhere and not later:
        return await _enqueue_here(access, jobs)
    answers = {index: Enqueued(job.id, existing=True) for index, job in enumerate(jobs) if job.id in elsewhere}
    here = sorted(set(range(len(jobs))) - answers.keys() - set(later))
    answers |= zip(here, await _enqueue_here(access, [jobs[index] for index in here]), strict=True)
    later = [index for index in later if index not in answers]
    asked = [msgspec.structs.replace(jobs[index], fresh="") for index in later]
    with after_storing({jobs[index].queue for index in here}):
        answers |= zip(later, await enqueue(access, asked), strict=True)
    return [answers[index] for index in range(len(jobs))]


def _repeated_elsewhere(jobs: Sequence[NewJob]) -> list[int]:
    """The indexes of jobs whose id occurs earlier in the batch for another queue."""
    first: dict[JobId, str] = {}
    return [index for index, job in enumerate(jobs) if first.setdefault(job.id, job.queue) != job.queue]


async def _enqueue_here(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Enqueue jobs with ids that no other queue knows."""
    indexes: dict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        indexes[job.queue].append(index)
    if len(indexes) == 1:
        return await _enqueue_in(access, jobs[0].queue, jobs)
    answers: dict[int, Enqueued] = {}
    by_queue = {queue: [jobs[i] for i in mine] for queue, mine in indexes.items()}
    for queue, answered in (await _enqueue_by_queue(access, by_queue)).items():
        _note(access, queue, answered)
        answers |= zip(indexes[queue], answered, strict=True)
    return [answers[index] for index in range(len(jobs))]


async def _enqueue_in(access: Access, queue: str, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Enqueue jobs of one queue, with ids that no other queue knows."""
    if _is_large(jobs):
        answers = (await enqueue_large(access, {queue: jobs}))[queue]
    else:
        batch = to_batch(jobs)
        reply = await access.call("enqueue_plain", queue, batch.request, *batch.blobs) if batch.plain else OTHER
        if reply == OTHER:
            reply = await access.call("enqueue", queue, batch.request, *batch.blobs)
        answers = batch.answers(reply)
        if len(reply) > 1:
            await _notify(access, {queue: (batch, reply)})
    _note(access, queue, answers)
    return answers


async def _enqueue_by_queue(access: Access, jobs: Mapping[str, Sequence[NewJob]]) -> dict[str, list[Enqueued]]:
    if any(_is_large(mine) for mine in jobs.values()):
        return await enqueue_large(access, jobs)
    batches = {queue: to_batch(mine) for queue, mine in jobs.items()}
    requests = {queue: (batch.request, *batch.blobs) for queue, batch in batches.items()}
    # Nothing is atomic over two queues: all of them are checked first, so that a refusal stores nothing anywhere.
    replies = await access.call_queues("check_enqueue", requests)
    for queue, batch in batches.items():
        batch.check(replies[queue])
    replies = await access.call_each("enqueue", requests)
    answers = _answers(batches, replies)
    await _notify(access, {queue: (batch, replies[queue]) for queue, batch in batches.items()})
    return answers


def _answers(batches: Mapping[str, EnqueueBatch], replies: Mapping[str, Any]) -> dict[str, list[Enqueued]]:
    """The replies of the queues; raises the first error, `maybe_done` if any call may have stored jobs."""
    answers: dict[str, list[Enqueued]] = {}
    errors: list[Exception] = []
    for queue, batch in batches.items():
        reply = replies[queue]
        try:
            if isinstance(reply, Exception):
                raise reply
            answers[queue] = batch.answers(reply)
        except (StoreUnavailable, KeyConflict, QueueClosed, ParentKeyTaken) as error:
            errors.append(error)
    if not errors:
        return answers
    doubtful = {queue for queue, reply in replies.items() if isinstance(reply, StoreUnavailable) and reply.maybe_done}
    stored = answers.keys() | doubtful
    worst = next((error for error in errors if not isinstance(error, ParentKeyTaken)), errors[0])
    if isinstance(worst, ParentKeyTaken):
        raise ParentKeyTaken(stored)
    with after_storing(stored):
        raise worst


async def _notify(access: Access, answered: Mapping[str, tuple[EnqueueBatch, Sequence[Any]]]) -> None:
    """Register children with parents in other queues; notify dependents of replaced jobs."""
    await notify_after_enqueue(
        access,
        {queue: batch.ids_to_register(reply) for queue, (batch, reply) in answered.items()},
        [queue for queue, (batch, reply) in answered.items() if batch.changes_parents(reply)],
    )


def _note(access: Access, queue: str, answers: Sequence[Enqueued]) -> None:
    access.server.job_locations.note(queue, [answer.id for answer in answers])


def _is_large(jobs: Sequence[NewJob]) -> bool:
    return len(jobs) > 1 and next(portions(jobs)) is not jobs


MAX_COALESCED = MAX_WEIGHT // 2
"""Weight of jobs: about 2 ms of the server's time."""
MAX_TEXT = 250_000


class WaitingEnqueue(msgspec.Struct, frozen=True):
    """A caller's jobs, until a call stores them."""

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
        """Start a call for the enqueues that were collected during the last one."""
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
                each.answers.cancel()  # no-op unless the loop ends before its result
            self._start_next(loop, queue)

    async def _enqueue_group(self, group: Sequence[WaitingEnqueue]) -> None:
        try:
            answers = iter(await enqueue(self._access, [job for each in group for job in each.jobs]))
        except StoreUnavailable as error:
            for each in group:
                _fail(each, error)
        except Exception:
            # One enqueue was refused, and nothing is stored: each is tried alone.
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
