"""Idempotency keys: one row for each held key."""

from collections.abc import Collection, Iterable, Mapping

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.keys import Holder, Keyed, KeyRef, key_ref
from windlass.store.postgres.connection.db import Db

MAX_ROUNDS = 10


async def claim_keys(
    db: Db, wanted: Mapping[KeyRef, JobId], giving_way: Collection[KeyRef] = (), *, own: bool = False
) -> dict[KeyRef, Holder]:
    """Take each key that is free; returns the holders of the others.

    If a key is freed between the try and the read, it is tried again. The holders of the keys `giving_way` may have
    to be replaced: they are locked, and their status is returned, unless another transaction has locked them. With
    `own`, a job may take a key whose window it has itself, as a retry does; a repeated enqueue conflicts with that
    window.
    """
    held: dict[KeyRef, JobId] = {}
    open_ = dict(wanted)
    for _ in range(MAX_ROUNDS):
        if not open_:
            break
        for name in ("take_keys", "take_over_keys"):
            for queue, hash_ in await db.rows(name, {**_columns(open_), "own": own}):
                del open_[queue, hash_]
            if not open_:
                break
        else:
            held |= await _holders(db, "lock_keys", [ref for ref in open_ if ref in giving_way])
            held |= await _holders(db, "key_holders", [ref for ref in open_ if ref not in giving_way])
            open_ = {ref: job for ref, job in open_.items() if ref not in held}
    if open_:
        raise StoreUnavailable(f"{len(open_)} idempotency keys change their holders faster than they can be taken")
    waiting = await _lock(db, [held[ref] for ref in giving_way if ref in held])
    return {ref: Holder(job, waiting.get(job)) for ref, job in held.items()}


async def _holders(db: Db, name: str, refs: list[KeyRef]) -> dict[KeyRef, JobId]:
    if not refs:
        return {}
    values = {"queues": [queue for queue, _ in refs], "hashes": [hash_ for _, hash_ in refs]}
    return {(queue, hash_): job for queue, hash_, job in await db.rows(name, values)}


async def _lock(db: Db, ids: list[JobId]) -> dict[JobId, Status]:
    if not ids:
        return {}
    return {id_: Status(status) for id_, status in await db.rows("lock_holders", {"ids": ids})}


async def hand_over(db: Db, taken: Mapping[KeyRef, JobId]) -> None:
    """Give these keys to these jobs."""
    if taken:
        await db.run("reassign_keys", _columns(taken))


async def give_up(db: Db, taken: Mapping[KeyRef, JobId]) -> None:
    """Free keys that were taken in this transaction."""
    await db.run("release_keys", _columns(taken))


async def take(db: Db, queue: str, key: str, job: JobId) -> JobId | None:
    """Take a key for a job; returns the id of another holder, if there is one."""
    ref = key_ref(queue, key)
    holder = (await claim_keys(db, {ref: job}, own=True)).get(ref)
    return None if holder is None or holder.job == job else holder.job


async def release(db: Db, ended: Iterable[Keyed]) -> None:
    """Free the keys of finished jobs, at once or after their windows."""
    keyed = [(key_ref(job.queue, job.key), job) for job in ended if job.key is not None]
    freed = {ref: job.id for ref, job in keyed if not job.window}
    kept = {ref: job for ref, job in keyed if job.window}
    if freed:
        await db.run("release_keys", _columns(freed))
    if kept:
        columns = _columns({ref: job.id for ref, job in kept.items()})
        await db.run("hold_keys_for_window", {**columns, "lengths": [kept[ref].window for ref in sorted(kept)]})


def _columns(taken: Mapping[KeyRef, JobId]) -> dict[str, list[str]]:
    """The keys and jobs as columns, sorted, to avoid deadlocks."""
    refs = sorted(taken)
    return {
        "queues": [queue for queue, _ in refs],
        "hashes": [hash_ for _, hash_ in refs],
        "jobs": [taken[ref] for ref in refs],
    }
