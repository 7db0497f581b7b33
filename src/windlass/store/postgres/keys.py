"""Idempotency keys: who has which. One row per key, whatever became of the others that had it."""

from collections.abc import Collection, Iterable, Mapping

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.keys import Holder, Keyed, Place, place_of
from windlass.store.postgres.db import Db

MOST_ROUNDS = 10


async def claim_keys(
    db: Db, wanted: Mapping[Place, JobId], giving_way: Collection[Place] = (), *, own: bool = False
) -> dict[Place, Holder]:
    """Take each key for its job if nobody has it; else who has it.

    A key may be freed between the try and the look: then it is tried again. The status of a holder is told only where
    it may have to give way, and only if it is in nobody's hands at this moment: it is locked from then on. A job
    that comes back takes its `own` window over; one that is handed in again meets it.
    """
    held: dict[Place, JobId] = {}
    open_ = dict(wanted)
    for _ in range(MOST_ROUNDS):
        if not open_:
            break
        for name in ("take_keys", "take_over_keys"):
            for queue, hash_ in await db.rows(name, {**_columns(open_), "own": own}):
                del open_[queue, hash_]
            if not open_:
                break
        else:
            held |= await _holders(db, "lock_keys", [place for place in open_ if place in giving_way])
            held |= await _holders(db, "key_holders", [place for place in open_ if place not in giving_way])
            open_ = {place: job for place, job in open_.items() if place not in held}
    if open_:
        raise StoreUnavailable(f"{len(open_)} idempotency keys change hands faster than they can be taken")
    waiting = await _lock(db, [held[place] for place in giving_way if place in held])
    return {place: Holder(job, waiting.get(job)) for place, job in held.items()}


async def _holders(db: Db, name: str, places: list[Place]) -> dict[Place, JobId]:
    if not places:
        return {}
    values = {"queues": [queue for queue, _ in places], "hashes": [hash_ for _, hash_ in places]}
    return {(queue, hash_): job for queue, hash_, job in await db.rows(name, values)}


async def _lock(db: Db, ids: list[JobId]) -> dict[JobId, Status]:
    if not ids:
        return {}
    return {id_: Status(status) for id_, status in await db.rows("lock_holders", {"ids": ids})}


async def hand_over(db: Db, taken: Mapping[Place, JobId]) -> None:
    """These jobs have these keys now."""
    if taken:
        await db.run("hand_over_keys", _columns(taken))


async def give_up(db: Db, taken: Mapping[Place, JobId]) -> None:
    """These keys were taken in this very transaction, and are not wanted after all."""
    await db.run("free_keys", _columns(taken))


async def take(db: Db, queue: str, key: str, job: JobId) -> JobId | None:
    """Take a key for a job: None if it is ours now, else the id of the job that stands."""
    place = place_of(queue, key)
    holder = (await claim_keys(db, {place: job}, own=True)).get(place)
    return None if holder is None or holder.job == job else holder.job


async def release(db: Db, ended: Iterable[Keyed]) -> None:
    """Jobs have ended: their keys are free, at once or after their windows."""
    keyed = [(place_of(job.queue, job.key), job) for job in ended if job.key is not None]
    freed = {place: job.id for place, job in keyed if not job.window}
    kept = {place: job for place, job in keyed if job.window}
    if freed:
        await db.run("free_keys", _columns(freed))
    if kept:
        columns = _columns({place: job.id for place, job in kept.items()})
        await db.run("keep_keys", {**columns, "lengths": [kept[place].window for place in sorted(kept)]})


def _columns(taken: Mapping[Place, JobId]) -> dict[str, list[str]]:
    """Sorted, so that two who want the same keys do not wait for each other in a circle."""
    places = sorted(taken)
    return {
        "queues": [queue for queue, _ in places],
        "hashes": [hash_ for _, hash_ in places],
        "jobs": [taken[place] for place in places],
    }
