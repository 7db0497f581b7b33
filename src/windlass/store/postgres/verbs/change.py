"""change: waiting jobs get another time, priority, payload or queue; dead ones another payload."""

from collections.abc import Mapping, Sequence

from windlass.core.flow.key_slots import key_slot_after, or_waiting_for_key
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange, Timing, may_change, reschedule
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.limits.idempotency_keys import release, take
from windlass.store.postgres.verbs.operator_verbs import Found, JobState, find, unless_changed
from windlass.store.records import Transition
from windlass.store.sql.queues import add_missing


async def change(
    db: Db, ids: Sequence[JobId], wanted: JobChange, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Change jobs, each completely or not at all; the idempotency key moves with the job to another queue."""

    async def verb(some: list[JobId]) -> dict[JobId, Transition]:
        found = await find(db, some, lock_finished=wanted.is_repair)
        allowed = [id_ for id_ in some if id_ in found and may_change(found[id_].status, wanted)]
        waiting, dead = [[id_ for id_ in allowed if found[id_].finished is over] for over in (False, True)]
        holders = await _move_keys(db, found, waiting, wanted.queue)
        now = await db.now()
        after = {id_: _changed(found[id_], wanted, now) for id_ in waiting if id_ not in holders}
        await _write(db, after, wanted)
        if dead:
            await db.run("repair", {"ids": dead, "payload": wanted.payload})
        moved = {id_: Transition(id_, at.status, done=False, holder=holders.get(id_)) for id_, at in found.items()}
        moved |= {id_: Transition(id_, timing.status, done=True) for id_, (timing, _) in after.items()}
        return moved | {id_: Transition(id_, Status.DEAD, done=True) for id_ in dead}

    return await unless_changed(db, ids, versions, verb)


async def _move_keys(db: Db, found: Found, ids: Sequence[JobId], queue: str | None) -> dict[JobId, JobId]:
    """Move the idempotency keys of these jobs to their new queue; returns {job: holder} for keys taken there."""
    holders: dict[JobId, JobId] = {}
    moving = [id_ for id_ in ids if queue is not None and found[id_].queue != queue]
    if queue is None or not moving:
        return holders
    await add_missing(db, [queue])
    keyed = [(key, id_) for id_ in moving if (key := found[id_].key) is not None]
    # In the order of the keys, to avoid deadlocks; of two jobs with the same key, the one named first gets it.
    for key, id_ in sorted(keyed, key=lambda each: each[0]):
        if holder := await take(db, queue, key, id_):
            holders[id_] = holder
    await release(db, [Keyed(id_, found[id_].queue, key, None) for key, id_ in keyed if id_ not in holders])
    return holders


def _changed(at: JobState, wanted: JobChange, now: Micros) -> tuple[Timing, int | None]:
    """The timing and key slot of a job after the change."""
    after = reschedule(Timing(at.status, at.reason, at.run_at, at.rank), wanted, now)
    key_slot = key_slot_after(at.key_slot, after, wanted, moves=wanted.queue not in (None, at.queue))
    return or_waiting_for_key(after, at.concurrency_key, key_slot), key_slot


async def _write(db: Db, after: Mapping[JobId, tuple[Timing, int | None]], wanted: JobChange) -> None:
    if not after:
        return
    timings = [timing for timing, _ in after.values()]
    values = {
        "ids": list(after),
        "statuses": [str(timing.status) for timing in timings],
        "reasons": [timing.reason for timing in timings],
        "run_ats": [timing.run_at for timing in timings],
        "ranks": [timing.rank for timing in timings],
        "key_slots": [key_slot for _, key_slot in after.values()],
        "sort_priority": None if wanted.priority is None else -wanted.priority,
        "payload": wanted.payload,
        "timed": wanted.is_timed,
        "queue": wanted.queue,
    }
    rows = await db.rows("change", values)
    # Add watermarks before these jobs are due: admission adds none.
    await watermarks.add_watermarks(db, [tuple(row[:2]) for row in rows if row[3] != Status.PENDING])
    # A job may have moved to another queue or priority with an old rank.
    await watermarks.lower(db, [tuple(row[:3]) for row in rows if row[3] == Status.PENDING])
