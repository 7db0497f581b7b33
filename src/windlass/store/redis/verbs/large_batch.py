"""Large enqueue batches: staged invisibly in portions, committed by one call, and then stored.

A producer that dies before the commit has enqueued nothing, and its portions are dropped; after the commit all of
its jobs are stored, by any process. Nothing is atomic over two queues: each is committed by itself, after all were
checked.
"""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId, new_id
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import after_storing
from windlass.store.redis.dependencies.dependents import notify_after_enqueue
from windlass.store.redis.records.record import encode
from windlass.store.redis.verbs.batch import EnqueueBatch, ParentKeyTaken, may_have_own_time, to_batch

MAX_WEIGHT = 500
"""Plain jobs that a script stores in about 4 ms; others weigh more."""
NEW_KIND_WEIGHT = 4
MAX_TEXT = 1_000_000
MISSING = 3


class Staged(msgspec.Struct):
    """A staged portion, and the replies for its jobs."""

    batch: EnqueueBatch
    answers: list[Enqueued]
    to_register: list[JobId] = []
    """Stored jobs that must register with their parents."""
    changes_parents: bool = False


def weight_of(job: NewJob) -> int:
    """The measured cost of a job, in plain jobs."""
    weight = 1
    if job.idempotency_key is not None:
        weight += 7 if job.on_conflict is OnConflict.REPLACE else 2
    if job.concurrency_key is not None:
        weight += 5
    if job.expires is not None or job.expires_at is not None:
        weight += 1
    if job.parents or job.schedule is not None:
        weight += 2
    return weight


def kind_of(job: NewJob) -> tuple[Hashable, ...]:
    """Jobs that differ in any of these are stored one kind after the other."""
    parent = "" if job.parents else job.parent
    time = job.run_at is None if may_have_own_time(job) else (job.run_at, job.delay)
    return job.type, job.priority, job.tenant, time, parent


def portions(jobs: Sequence[NewJob], kind_of: Callable[[NewJob], Hashable] = kind_of) -> Iterator[Sequence[NewJob]]:
    """The jobs in their order, in portions for one script; the same list, if all fit into one."""
    start, weight, text = 0, 0, 0
    kinds: set[Hashable] = set()
    for index, job in enumerate(jobs):
        mine, length = weight_of(job), len(job.payload) + len(job.meta or "")
        weight += mine
        if (kind := kind_of(job)) not in kinds:
            weight += NEW_KIND_WEIGHT if kinds else 0
            kinds.add(kind)
        text += length
        if index > start and (weight > MAX_WEIGHT or text > MAX_TEXT):
            yield jobs[start:index]
            start, weight, text, kinds = index, mine, length, {kind}
    yield jobs[start:] if start else jobs


async def enqueue_large(access: Access, jobs: Mapping[str, Sequence[NewJob]]) -> dict[str, list[Enqueued]]:
    """Jobs by queue: all or none in each; none in any if one of them would be refused."""
    batch = new_id()
    staged: dict[str, list[Staged]] = {}
    try:
        for queue, mine in jobs.items():
            staged[queue] = []
            await _stage(access, batch, mine, staged[queue])
            _check_within(staged[queue])
    except (QueueClosed, KeyConflict, ParentKeyTaken):
        await _drop_staged(access, batch, staged)
        raise
    except StoreUnavailable as error:
        if not error.maybe_done:  # there may be no memory for more, so staged portions must go
            with contextlib.suppress(StoreUnavailable):
                await _drop_staged(access, batch, staged)
        error.maybe_done = False  # drop what was staged: nothing is committed
        raise
    await _commit_all(access, batch, staged)
    with after_storing(staged):
        for queue, mine_staged in staged.items():
            await _store(access, queue, batch, mine_staged)
    await notify_after_enqueue(
        access,
        {queue: [id_ for each in mine for id_ in each.to_register] for queue, mine in staged.items()},
        [queue for queue, mine in staged.items() if any(each.changes_parents for each in mine)],
    )
    return {queue: [answer for each in mine for answer in each.answers] for queue, mine in staged.items()}


async def store_batch(access: Access, queue: str, batch: str) -> None:
    """Store what is left of a committed batch."""
    while (await access.call("store_batch", queue, batch))[0]:
        pass


async def drop_batch(access: Access, queue: str, batch: str) -> None:
    """Drop what was staged and not committed."""
    while await access.call("drop_batch", queue, batch):
        pass


async def _stage(access: Access, batch: JobId, jobs: Sequence[NewJob], staged: list[Staged]) -> None:
    for number, portion in enumerate(portions(jobs), 1):
        made = to_batch(portion)
        reply = await access.call("stage_batch", portion[0].queue, (batch, number), encode(made.request), *made.blobs)
        _check_staged(access, reply)
        answers = made.answers(reply)
        staged.append(Staged(msgspec.structs.replace(made, request=None, blobs=[]), answers))


def _check_within(staged: Sequence[Staged]) -> None:
    """Raise KeyConflict for jobs with one key in two portions of the batch."""
    holders: dict[str, JobId] = {}
    for each in staged:
        for job, answer in zip(each.batch.jobs, each.answers, strict=True):
            if job.idempotency_key is None or answer.existing:
                continue
            if job.on_conflict is OnConflict.RAISE and job.idempotency_key in holders:
                raise KeyConflict(job.idempotency_key, holders[job.idempotency_key])
            holders[job.idempotency_key] = job.id


async def _drop_staged(access: Access, batch: JobId, queues: Iterable[str]) -> None:
    for queue in queues:
        await drop_batch(access, queue, batch)


async def _commit_all(access: Access, batch: JobId, staged: Mapping[str, Sequence[Staged]]) -> None:
    """Commit queue by queue. If one fails, earlier ones stay committed, and the error says so."""
    committed: list[str] = []
    with after_storing(committed):
        for queue, mine in staged.items():
            try:
                await _commit(access, queue, batch, mine)
            except QueueClosed:
                await _drop_staged(access, batch, staged.keys() - set(committed))
                for done in committed:
                    await store_batch(access, done, batch)
                raise
            committed.append(queue)


async def _commit(access: Access, queue: str, batch: JobId, staged: Sequence[Staged]) -> None:
    if all(answer.existing for each in staged for answer in each.answers):
        await drop_batch(access, queue, batch)
        return
    reply = await access.call("commit_batch", queue, (batch, len(staged)))
    _check_staged(access, reply)
    staged[0].batch.check(reply)


async def _store(access: Access, queue: str, batch: JobId, staged: Sequence[Staged]) -> None:
    """Existing jobs may differ from those at staging, if another process stores a portion."""
    left = 1
    while left:
        left, number, *reply = await access.call("store_batch", queue, batch)
        if number:
            mine = staged[number - 1]
            mine.answers, mine.to_register = mine.batch.answers(reply), mine.batch.ids_to_register(reply)
            mine.changes_parents = mine.batch.changes_parents(reply)


def _check_staged(access: Access, reply: Sequence[Any]) -> None:
    if reply[0] == MISSING:
        raise StoreUnavailable(f"{access.server.shown}: an enqueue took so long that its first portions were dropped")
