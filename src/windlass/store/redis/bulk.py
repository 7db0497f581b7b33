"""Large hand-ins: staged in portions of which nothing is seen, committed by one flip, and then unfolded.

A producer that dies before the flip has handed in nothing, and what it staged is dropped; after the flip all of its
jobs will come, whoever unfolds them. Nothing is atomic over two queues: each is flipped by itself, after all were
checked.
"""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.idempotency import OnConflict
from windlass.core.ids import JobId, new_id
from windlass.core.job import Enqueued, NewJob
from windlass.errors import KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.heirs import follow, register
from windlass.store.redis.intake import Intake, Overtaken, to_intake
from windlass.store.redis.record import encode

MOST_WEIGHT = 500
"""What a script takes in, in about 4 ms: so many plain jobs, or fewer that are more work."""
NEW_KIND = 4
MOST_TEXT = 1_000_000
GONE = 3


class Staged(msgspec.Struct):
    """A portion on its way, and what the store says of it."""

    intake: Intake
    answers: list[Enqueued]
    asking: list[JobId] = []
    """Those that must ask for their parents, now that they are stored."""
    stirs: bool = False


def weight_of(job: NewJob) -> int:
    """How much work a job is, in plain ones, as measured."""
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


def look_of(job: NewJob) -> tuple[Hashable, ...]:
    """Those that differ in any of this are stored one kind after the other."""
    parent = "" if job.parents else job.parent
    return job.type, job.priority, job.tenant, job.run_at, job.delay, parent


def portions(jobs: Sequence[NewJob], look_of: Callable[[NewJob], Hashable] = look_of) -> Iterator[Sequence[NewJob]]:
    """The jobs in their order, as many at a time as one script takes in; themselves, if that is all of them."""
    start, weight, text = 0, 0, 0
    looks: set[Hashable] = set()
    for place, job in enumerate(jobs):
        mine, length = weight_of(job), len(job.payload) + len(job.meta or "")
        weight += mine
        if (look := look_of(job)) not in looks:
            weight += NEW_KIND if looks else 0
            looks.add(look)
        text += length
        if place > start and (weight > MOST_WEIGHT or text > MOST_TEXT):
            yield jobs[start:place]
            start, weight, text, looks = place, mine, length, {look}
    yield jobs[start:] if start else jobs


async def enqueue_bulk(access: Access, jobs: Mapping[str, Sequence[NewJob]]) -> dict[str, list[Enqueued]]:
    """Jobs by queue: all or none in each; none in any if one of them would be refused."""
    batch = new_id()
    staged: dict[str, list[Staged]] = {}
    try:
        for queue, mine in jobs.items():
            staged[queue] = []
            await _stage(access, batch, mine, staged[queue])
            _check_within(staged[queue])
    except (QueueClosed, KeyConflict, Overtaken):
        await _give_up(access, batch, staged)
        raise
    except StoreUnavailable as error:
        if not error.maybe_done:  # it answered: there may be no room for more, and so what is there must go
            with contextlib.suppress(StoreUnavailable):
                await _give_up(access, batch, staged)
        error.maybe_done = False  # whatever was staged: nothing is committed
        raise
    await _flip_all(access, batch, staged)
    for queue, mine_staged in staged.items():
        await _unfold(access, queue, batch, mine_staged)
    await register(access, {queue: [id_ for each in mine for id_ in each.asking] for queue, mine in staged.items()})
    await follow(access, [queue for queue, mine in staged.items() if any(each.stirs for each in mine)])
    return {queue: [answer for each in mine for answer in each.answers] for queue, mine in staged.items()}


async def unfold(access: Access, queue: str, batch: str) -> None:
    """Store what is left of a committed hand-in."""
    while (await access.call("unfold", queue, batch))[0]:
        pass


async def unstage(access: Access, queue: str, batch: str) -> None:
    """Drop what was staged and not committed."""
    while await access.call("unstage", queue, batch):
        pass


async def _stage(access: Access, batch: JobId, jobs: Sequence[NewJob], staged: list[Staged]) -> None:
    for number, portion in enumerate(portions(jobs), 1):
        intake = to_intake(portion)
        reply = await access.call("stage", portion[0].queue, (batch, number), encode(intake.request), *intake.blobs)
        _check_there(access, reply)
        answers = intake.answers(reply)
        staged.append(Staged(msgspec.structs.replace(intake, request=None, blobs=[]), answers))


def _check_within(staged: Sequence[Staged]) -> None:
    """One that wants to be refused may meet another of the same hand-in, in another portion."""
    holders: dict[str, JobId] = {}
    for each in staged:
        for job, answer in zip(each.intake.jobs, each.answers, strict=True):
            if job.idempotency_key is None or answer.existing:
                continue
            if job.on_conflict is OnConflict.RAISE and job.idempotency_key in holders:
                raise KeyConflict(job.idempotency_key, holders[job.idempotency_key])
            holders[job.idempotency_key] = job.id


async def _give_up(access: Access, batch: JobId, queues: Iterable[str]) -> None:
    for queue in queues:
        await unstage(access, queue, batch)


async def _flip_all(access: Access, batch: JobId, staged: Mapping[str, Sequence[Staged]]) -> None:
    """Queue by queue. What was committed before one of them failed stays so, and whoever hears of it must know."""
    flipped: list[str] = []
    try:
        for queue, mine in staged.items():
            await _flip(access, queue, batch, mine)
            flipped.append(queue)
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or bool(flipped)
        raise
    except QueueClosed:
        await _give_up(access, batch, staged.keys() - set(flipped))
        for queue in flipped:
            await unfold(access, queue, batch)
        raise


async def _flip(access: Access, queue: str, batch: JobId, staged: Sequence[Staged]) -> None:
    if all(answer.existing for each in staged for answer in each.answers):
        await unstage(access, queue, batch)
        return
    reply = await access.call("flip", queue, (batch, len(staged)))
    _check_there(access, reply)
    staged[0].intake.check(reply)


async def _unfold(access: Access, queue: str, batch: JobId, staged: Sequence[Staged]) -> None:
    """Who stands instead may be others than when it was staged; that must do if somebody else unfolds a portion."""
    left = 1
    while left:
        try:
            left, number, *reply = await access.call("unfold", queue, batch)
        except StoreUnavailable as error:
            error.maybe_done = True
            raise
        if number:
            mine = staged[number - 1]
            mine.answers, mine.asking = mine.intake.answers(reply), mine.intake.asking(reply)
            mine.stirs = mine.intake.stirs(reply)


def _check_there(access: Access, reply: Sequence[Any]) -> None:
    if reply[0] == GONE:
        raise StoreUnavailable(f"{access.server.shown}: a hand-in took so long that its first portions were dropped")
