"""cancel, retry, delete: what people do with jobs. A move that the job's status does not allow changes nothing.

A few statements for any number of jobs: the living are locked in order, the finished looked up after them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.status import RETRYABLE, WAITING, Status
from windlass.store.attempts import add_attempt, last_attempt
from windlass.store.postgres.cancel import call_off
from windlass.store.postgres.db import Db
from windlass.store.postgres.find import Found, each, find
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
    """Pending, or in line, with a fresh budget; the attempt number goes on, the idempotency key is taken again."""

    async def verb(some: list[JobId]) -> dict[JobId, Moved]:
        found = await find(db, some, lock_finished=True)
        # In the order in which they were named: of two that had the same key, the first has it.
        retryable = [id_ for id_ in some if id_ in found and found[id_].status in RETRYABLE]
        finished = [id_ for id_ in retryable if found[id_].finished]
        failed = [id_ for id_ in retryable if not found[id_].finished]
        holders = await _take_keys(db, found, finished)
        back = await db.rows("retry_failed", {"ids": failed}) if failed else []
        back += await _revive(db, [id_ for id_ in finished if id_ not in holders])
        moved = {id_: Moved(id_, at.status, done=False, holder=holders.get(id_)) for id_, at in found.items()}
        return moved | await let_run(db, back)

    return await each(ids, verb)


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
