"""cancel, retry, delete: what people do with jobs. A move that the job's status does not allow changes nothing.

A few statements for any number of jobs: the living are locked in order, the finished looked up after them.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from windlass.core.ids import JobId
from windlass.core.status import RETRYABLE, WAITING, Status
from windlass.store.attempts import add_attempt, last_attempt
from windlass.store.postgres.db import Db
from windlass.store.postgres.find import Found, each, find
from windlass.store.postgres.heirs import bring_back, call_off, wait_again
from windlass.store.postgres.keys import take
from windlass.store.postgres.lines import let_run
from windlass.store.postgres.prune import drop
from windlass.store.records import Moved


async def cancel(db: Db, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
    """Waiting jobs end now; running ones are asked to stop."""

    async def verb(some: list[JobId]) -> dict[JobId, Moved]:
        found = await find(db, some)
        running = _of(found, [Status.RUNNING])
        waiting = _of(found, WAITING)
        if running:
            await db.run("request_cancel", {"ids": running, "reason": reason})
        await call_off(db, dict.fromkeys(waiting, reason))
        moved = {id_: Moved(id_, at.status, done=not at.finished) for id_, at in found.items()}
        return moved | {id_: Moved(id_, Status.CANCELLED, done=True) for id_ in waiting}

    return await each(ids, verb)


async def retry(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending, or in line, with a fresh budget; the attempt number goes on, the idempotency key is taken again.

    Who was called off because of one of them waits for it again; one that waits for a parent itself goes on waiting.
    """

    async def verb(some: list[JobId]) -> dict[JobId, Moved]:
        # Before they are locked themselves: whoever ends a parent has that one first.
        await db.rows("lock_awaited", {"ids": some})
        found = await find(db, some, lock_finished=True)
        moved: dict[JobId, Moved] = {}
        for waits, group in groupby((id_ for id_ in some if id_ in found), key=lambda id_: found[id_].waits > 0):
            if waits:
                moved |= {id_: await _retry_link(db, id_) for id_ in group}
            else:
                moved |= await _retry(db, found, list(group))
        return moved

    return await each(ids, verb)


async def _retry(db: Db, found: Found, ids: Sequence[JobId]) -> dict[JobId, Moved]:
    """Those that wait for no parent."""
    # In the order in which they were named: of two that had the same key, the first has it.
    retryable = [id_ for id_ in ids if found[id_].status in RETRYABLE]
    finished = [id_ for id_ in retryable if found[id_].finished]
    failed = [id_ for id_ in retryable if not found[id_].finished]
    holders = await _take_keys(db, found, finished)
    back = await db.rows("retry_failed", {"ids": failed}) if failed else []
    revived = [id_ for id_ in finished if id_ not in holders]
    back += await _revive(db, revived)
    if revived:
        await bring_back(db, revived)
    moved = {id_: Moved(id_, found[id_].status, done=False, holder=holders.get(id_)) for id_ in ids}
    return moved | await let_run(db, back)


async def _retry_link(db: Db, id_: JobId) -> Moved:
    """One that was called off while it waited for a parent; by now that may have brought it back."""
    at = (await find(db, [id_], lock_finished=True))[id_]
    if not at.finished:
        return Moved(id_, at.status, done=False)
    if vain := await db.rows("vain_parents", {"id": id_}):
        return Moved(id_, at.status, done=False, parent=vain[0][0])
    if at.key is not None and (holder := await take(db, at.queue, at.key, id_)):
        return Moved(id_, at.status, done=False, holder=holder)
    await wait_again(db, [id_])
    await bring_back(db, [id_])
    return Moved(id_, Status.BLOCKED, done=True)


async def delete(db: Db, ids: Sequence[JobId]) -> list[Moved | None]:
    """Finished jobs only: a live one must be cancelled first."""

    async def verb(some: list[JobId]) -> dict[JobId, Moved]:
        found = await find(db, some, lock_finished=True)
        await drop(db, [id_ for id_, at in found.items() if at.finished])
        return {id_: Moved(id_, at.status, done=at.finished) for id_, at in found.items()}

    return await each(ids, verb)


def _of(found: Found, statuses: Iterable[Status]) -> list[JobId]:
    return [id_ for id_, at in found.items() if at.status in statuses]


async def _take_keys(db: Db, found: Found, ids: Sequence[JobId]) -> dict[JobId, JobId]:
    """Take the keys of these jobs again: of those that cannot have theirs, who holds it. In order of the keys."""
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
    """The ended attempts, including the last one if only the columns tell of it: they will be overwritten."""
    newest = last_attempt(fields)
    kept: str | None = fields["attempts"]
    return add_attempt(kept, newest) if newest else kept
