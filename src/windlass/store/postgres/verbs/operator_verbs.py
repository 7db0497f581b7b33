"""cancel, retry, delete, run_now: verbs for operators; each is a no-op if the job's status forbids it.

They use a few statements for any number of jobs, which lock live jobs in order, and then read finished ones.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.change import may_run_now
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import Micros
from windlass.core.status import RETRYABLE, WAITING, Status
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.idempotency_keys import take
from windlass.store.postgres.limits.key_queue import let_run
from windlass.store.postgres.verbs.dependents import cancel_with_dependents, revive_dependents, revive_waiting
from windlass.store.postgres.verbs.prune import drop
from windlass.store.records import Transition
from windlass.store.rows import add_attempt, last_attempt
from windlass.store.sql.versions import stale_jobs, with_stale

MAX_READS = 2
"""A job may be revived between the reads of live and of finished jobs: then the next round finds it."""

Found = dict[JobId, "JobState"]
Verb = Callable[[list[JobId]], Awaitable[dict[JobId, Transition]]]


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to decide about a job; a finished one has no timing."""

    status: Status
    queue: str
    sort_priority: int
    key: str | None
    finished: bool
    reason: str | None = None
    run_at: Micros = 0
    rank: Micros = 0
    concurrency_key: str | None = None
    key_slot: int | None = None
    pending_parents: int = 0
    """The number of parents that had not completed when the job was cancelled."""


async def find(db: Db, ids: Sequence[JobId], *, lock_finished: bool = False) -> Found:
    """The states of the jobs that exist; live ones are locked. Needs a transaction."""
    found: Found = {}
    for _ in range(MAX_READS):
        found |= await _live(db, [id_ for id_ in ids if id_ not in found])
        # In a later statement, because a job that was settled while we waited for its lock is in history now.
        found |= await _finished(db, [id_ for id_ in ids if id_ not in found], lock=lock_finished)
    return found


async def _live(db: Db, ids: list[JobId]) -> Found:
    rows = await db.rows("lock_live", {"ids": ids}) if ids else []
    return {
        id_: JobState(
            status=Status(status),
            queue=queue,
            sort_priority=sort_priority,
            key=key,
            finished=False,
            reason=reason,
            run_at=run_at,
            rank=rank,
            concurrency_key=concurrency_key,
            key_slot=key_slot,
        )
        for id_, status, reason, run_at, rank, queue, sort_priority, key, concurrency_key, key_slot in rows
    }


async def _finished(db: Db, ids: list[JobId], *, lock: bool) -> Found:
    rows = await db.rows("lock_finished" if lock else "finished", {"ids": ids}) if ids else []
    return {
        id_: JobState(
            status=Status(status),
            queue=queue,
            sort_priority=sort_priority,
            key=key,
            finished=True,
            pending_parents=pending_parents,
        )
        for id_, status, queue, sort_priority, key, pending_parents in rows
    }


async def unless_changed(db: Db, ids: Sequence[JobId], versions: Versions, verb: Verb) -> list[Transition | None]:
    """Apply a verb to jobs, except to those that have another version; returns the answers."""
    if not versions:
        return await each(ids, verb)
    await db.rows("lock_pending_parents", {"ids": list(versions)})
    await find(db, list(versions), lock_finished=True)
    stale = await stale_jobs(db, versions)
    return with_stale(ids, stale, await each([id_ for id_ in ids if id_ not in stale], verb))


async def each(ids: Sequence[JobId], verb: Verb) -> list[Transition | None]:
    """Apply a verb to jobs; returns one answer per id. To an id that is given twice, the verb is applied twice."""
    answers: list[Transition | None] = [None] * len(ids)
    waiting = dict(enumerate(ids))
    while waiting:
        firsts: dict[JobId, int] = {}
        for i, id_ in waiting.items():
            firsts.setdefault(id_, i)
        moved = await verb(list(firsts))
        for id_, i in firsts.items():
            answers[i] = moved.get(id_)
            del waiting[i]
    return answers


async def cancel(
    db: Db, ids: Sequence[JobId], reason: str, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Cancel waiting jobs, and ask running ones to stop."""

    async def verb(some: list[JobId]) -> dict[JobId, Transition]:
        found = await find(db, some)
        running = _of(found, [Status.RUNNING])
        waiting = _of(found, WAITING)
        if running:
            await db.run("request_cancel", {"ids": running, "reason": reason})
        await cancel_with_dependents(db, dict.fromkeys(waiting, reason))
        moved = {id_: Transition(id_, at.status, done=not at.finished) for id_, at in found.items()}
        return moved | {id_: Transition(id_, Status.CANCELLED, done=True) for id_ in waiting}

    return await unless_changed(db, ids, versions, verb)


async def retry(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending, or wait for their key, with a fresh budget; attempt numbers continue, keys are taken again.

    Jobs that were cancelled because of one of these wait for it again; one with pending parents waits for those.
    """

    async def verb(some: list[JobId]) -> dict[JobId, Transition]:
        # Lock parents before the jobs, as settlements do.
        await db.rows("lock_pending_parents", {"ids": some})
        found = await find(db, some, lock_finished=True)
        moved: dict[JobId, Transition] = {}
        for waits, group in groupby(
            (id_ for id_ in some if id_ in found), key=lambda id_: found[id_].pending_parents > 0
        ):
            if waits:
                moved |= await _retry_links(db, list(group))
            else:
                moved |= await _retry(db, found, list(group))
        return moved

    return await unless_changed(db, ids, versions, verb)


async def _retry(db: Db, found: Found, ids: Sequence[JobId]) -> dict[JobId, Transition]:
    """Retry jobs without pending parents."""
    # In the given order: of two jobs with the same key, the first gets it.
    retryable = [id_ for id_ in ids if found[id_].status in RETRYABLE]
    finished = [id_ for id_ in retryable if found[id_].finished]
    failed = [id_ for id_ in retryable if not found[id_].finished]
    holders = await _take_keys(db, found, finished)
    back = await db.rows("retry_failed", {"ids": failed}) if failed else []
    revived = [id_ for id_ in finished if id_ not in holders]
    back += await _revive(db, revived)
    if revived:
        await revive_dependents(db, revived)
    moved = {id_: Transition(id_, found[id_].status, done=False, holder=holders.get(id_)) for id_ in ids}
    return moved | await let_run(db, back)


async def _retry_links(db: Db, ids: list[JobId]) -> dict[JobId, Transition]:
    """Retry jobs that were cancelled while they waited for a parent; those with a failed parent one by one, in order,
    because an earlier one may be that parent.
    """
    found = await find(db, ids, lock_finished=True)
    failed = {row[0] for row in await db.rows("failed_parents", {"ids": ids})}
    moved: dict[JobId, Transition] = {}
    for waits, group in groupby(ids, key=lambda id_: found[id_].finished and id_ not in failed):
        if waits:
            moved |= await _wait_again(db, found, list(group))
        else:
            moved |= {id_: await _retry_link(db, id_) for id_ in group}
    return moved


async def _retry_link(db: Db, id_: JobId) -> Transition:
    """Retry a job that the retry of a parent may have revived by now."""
    found = await find(db, [id_], lock_finished=True)
    if not found[id_].finished:
        return Transition(id_, found[id_].status, done=False)
    if failed := await db.rows("failed_parents", {"ids": [id_]}):
        return Transition(id_, found[id_].status, done=False, parent=failed[0][1])
    return (await _wait_again(db, found, [id_]))[id_]


async def _wait_again(db: Db, found: Found, ids: list[JobId]) -> dict[JobId, Transition]:
    """Make cancelled jobs without a failed parent wait for their parents again, and their dependents for them."""
    holders = await _take_keys(db, found, ids)
    back = [id_ for id_ in ids if id_ not in holders]
    await revive_waiting(db, back)
    await revive_dependents(db, back)
    refused = {id_: Transition(id_, found[id_].status, done=False, holder=holder) for id_, holder in holders.items()}
    return refused | {id_: Transition(id_, Status.BLOCKED, done=True) for id_ in back}


async def delete(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Drop finished jobs."""

    async def verb(some: list[JobId]) -> dict[JobId, Transition]:
        found = await find(db, some, lock_finished=True)
        await drop(db, [id_ for id_, at in found.items() if at.finished])
        return {id_: Transition(id_, at.status, done=at.finished) for id_, at in found.items()}

    return await unless_changed(db, ids, versions, verb)


def _of(found: Found, statuses: Iterable[Status]) -> list[JobId]:
    return [id_ for id_, at in found.items() if at.status in statuses]


async def _take_keys(db: Db, found: Found, ids: Sequence[JobId]) -> dict[JobId, JobId]:
    """Take the idempotency keys of jobs again, in order; returns {job: holder} for keys that others hold."""
    holders = {}
    for queue, key, id_ in _keyed(found, ids):
        if holder := await take(db, queue, key, id_):
            holders[id_] = holder
    return holders


def _keyed(found: Found, ids: Sequence[JobId]) -> list[tuple[str, str, JobId]]:
    keyed = [(found[id_].queue, key, id_) for id_ in ids if (key := found[id_].key) is not None]
    return sorted(keyed, key=lambda each: each[:2])


async def _revive(db: Db, ids: list[JobId]) -> list[Any]:
    if not ids:
        return []
    known = {row[0]: _all_attempts(dict(row)) for row in await db.rows("attempts", {"ids": ids})}
    return await db.rows("revive", {"ids": list(known), "attempts": list(known.values())})


def _all_attempts(fields: dict[str, Any]) -> str | None:
    """All ended attempts, including the last one: the job's columns have it, and the next attempt overwrites them."""
    newest = last_attempt(fields)
    kept: str | None = fields["attempts"]
    return add_attempt(kept, newest) if newest else kept


async def run_now(db: Db, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending, or wait for their key, behind those that wait already; a pending job keeps its rank."""

    async def verb(some: list[JobId]) -> dict[JobId, Transition]:
        found = await find(db, some)
        ready = {id_ for id_, at in found.items() if may_run_now(at.status)}
        moved = {id_: Transition(id_, at.status, done=id_ in ready) for id_, at in found.items()}
        return moved | await let_run(db, await db.rows("run_now", {"ids": sorted(ready)}) if ready else [])

    return await unless_changed(db, ids, versions, verb)
