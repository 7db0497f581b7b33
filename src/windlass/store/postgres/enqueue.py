"""enqueue: store new jobs, all or none; known ids and held keys answer with the job that stands."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from windlass.core.codec import encode
from windlass.core.idempotency import OnConflict, replaced_by
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, NewJob
from windlass.core.status import Status
from windlass.errors import QueueClosed, StoreUnavailable
from windlass.store.contest import Contest, places_of
from windlass.store.keys import Place
from windlass.store.kinds import key_terms, kind_of
from windlass.store.postgres import packing
from windlass.store.postgres.cancel import call_off
from windlass.store.postgres.db import Db
from windlass.store.postgres.keys import claim_keys, give_up, hand_over
from windlass.store.postgres.queues import is_closed, make_if_new
from windlass.store.postgres.timed import is_timed, statement_of, times_of

MOST_IN_STATEMENT = 10_000
MOST_TEXT = 32_000_000
"""Bound what one statement has to carry."""


class Hint:
    """Whether a hand-in also wakes workers, and by which channel."""

    def __init__(self, channel: str, given: bool) -> None:
        self.channel = channel
        self.given = given


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether all go into one statement and none can meet another: new jobs of one task, without keys."""
    first = jobs[0]
    if not first.fresh or first.idempotency_key is not None or len(jobs) > MOST_IN_STATEMENT:
        return False
    if len(jobs) == 1:
        return True
    if sum(len(job.payload) for job in jobs) > MOST_TEXT:
        return False
    kind = kind_of(first)
    return all(kind_of(job) == kind and job.idempotency_key is None for job in jobs)


async def enqueue_alike(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued] | None:
    """One statement; None, and nothing stored, if that is not enough.

    The place that they come to must be made first, or the queue is closed, or one of them is not as fresh as it says.
    """
    try:
        stored = await _store(db, {**_common(jobs[0], hint), **_own(jobs)})
    except asyncpg.UniqueViolationError:
        return None
    return [Enqueued(job.id) for job in jobs] if stored else None


async def enqueue(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued]:
    """In a transaction: whatever they are. An id is known while it is live, in history or under a tombstone."""
    if not jobs:
        return []
    await _make_places(db, jobs)
    standing = await _standing(db, jobs)
    contest, claimed = await _contest(db, [job for job in jobs if job.id not in standing])
    answers: list[Enqueued] = []
    fresh: dict[Any, list[NewJob]] = defaultdict(list)
    for job in jobs:
        holder: JobId | None = job.id if job.id in standing else None
        if holder is None and job.idempotency_key is not None:
            holder = contest.enter(job, Status.PENDING)
        if holder is None:
            standing.add(job.id)
            fresh[statement_of(job)].append(job)
        answers.append(Enqueued(holder or job.id, existing=holder is not None))
    late: set[JobId] = set()
    for alike in fresh.values():
        late |= await _insert(db, alike, hint)
    # First the keys: those who are replaced then have none to release.
    await hand_over(db, {place: id_ for place, id_ in contest.taken.items() if id_ not in late})
    await _give_up_keys(db, contest, claimed, late)
    unmoved = late | {id_ for id_, why in contest.replaced.items() if why in set(map(replaced_by, late))}
    await call_off(db, {id_: why for id_, why in contest.replaced.items() if id_ not in unmoved})
    return [Enqueued(each.id, existing=True) if each.id in late else each for each in answers] if late else answers


async def _make_places(db: Db, jobs: Sequence[NewJob]) -> None:
    places = sorted({(job.queue, -job.priority) for job in jobs})
    await make_if_new(db, sorted({queue for queue, _ in places}))
    for queue, urgency in places:
        await db.run("make_place", {"queue": queue, "urgency": urgency})


async def _standing(db: Db, jobs: Sequence[NewJob]) -> set[JobId]:
    """Which of them are known: new ids cannot be, others may be."""
    ids = [job.id for job in jobs if not job.fresh]
    return {row[0] for row in await db.rows("standing", {"ids": ids})} if ids else set()


async def _contest(db: Db, jobs: Sequence[NewJob]) -> tuple[Contest, dict[Place, JobId]]:
    """The contest, and the keys that were taken for it: those that nobody wins must be given up."""
    keyed = [job for job in jobs if job.idempotency_key is not None]
    places = places_of(keyed)
    wanted: dict[Place, JobId] = {}
    giving_way = set()
    for job in keyed:
        place = places[job.queue, job.idempotency_key or ""]
        wanted.setdefault(place, job.id)
        if job.on_conflict is OnConflict.REPLACE:
            giving_way.add(place)
    held = await claim_keys(db, wanted, giving_way) if wanted else {}
    return Contest(held, keyed), {place: id_ for place, id_ in wanted.items() if place not in held}


async def _give_up_keys(db: Db, contest: Contest, claimed: Mapping[Place, JobId], late: set[JobId]) -> None:
    """Those who were there before have no use for a key that they took a moment ago: nobody would ever free it.

    Nor has anybody for one that was taken for a job that came twice in one hand-in, with two keys.
    """
    given_up = {place: id_ for place, id_ in claimed.items() if place not in contest.taken}
    given_up |= {place: id_ for place, id_ in contest.taken.items() if id_ in late}
    if given_up:
        await give_up(db, given_up)


async def _insert(db: Db, alike: Sequence[NewJob], hint: Hint) -> set[JobId]:
    """Store them; which of them had been there before after all, handed in by somebody else at the same moment."""
    longest = max(len(job.payload) for job in alike)
    step = max(1, min(MOST_IN_STATEMENT, MOST_TEXT // (longest + 1)))
    common, late = _common(alike[0], hint), set()
    for start in range(0, len(alike), step):
        part = alike[start : start + step]
        if part[0].fresh:
            storing = _store_timed(db, part, hint) if is_timed(part[0]) else _store(db, {**common, **_own(part)})
            if not await storing:
                raise await _refused(db, part[0])
            continue
        ((there, stored, _),) = await db.rows("enqueue_again", {**common, **_own(part)})
        if not there:
            raise await _refused(db, part[0])
        over = {row[0] for row in await db.rows("known", {"ids": stored or []})}
        if over:
            await db.run("drop_new", {"ids": sorted(over)})
        late |= {job.id for job in part} - set(stored or []) | over
    return late


async def _store(db: Db, values: Mapping[str, Any]) -> int:
    """Those without concurrency keys by a statement that knows of none, and is as fast as can be."""
    return await db.run("enqueue" if values["concurrency_keys"] is None else "enqueue_keyed", values)


async def _store_timed(db: Db, jobs: Sequence[NewJob], hint: Hint) -> int:
    """One that says its moment may be due at once: then somebody is to know."""
    first = next((job for job in jobs if job.run_at is not None), jobs[0])
    return await db.run("enqueue_timed", {**_common(first, hint), **_own(jobs), **times_of(jobs)})


async def _refused(db: Db, job: NewJob) -> QueueClosed | StoreUnavailable:
    """Why nothing was stored: the queue is closed, or its place, made in this very transaction, is gone since."""
    if await is_closed(db, job.queue):
        return QueueClosed(job.queue)
    return StoreUnavailable(f"queue {job.queue!r} at priority {job.priority} is gone; nothing was stored")


def _own(jobs: Sequence[NewJob]) -> dict[str, Any]:
    return {
        "ids": packing.ids([job.id for job in jobs]),
        "payloads": [job.payload for job in jobs],
        "keys": packing.texts([job.idempotency_key for job in jobs]),
        "concurrency_keys": packing.texts([job.concurrency_key for job in jobs]),
    }


def _common(job: NewJob, hint: Hint) -> Mapping[str, Any]:
    return {
        "queue": job.queue,
        "type": job.type,
        "urgency": -job.priority,
        "run_at": job.run_at,
        "delay": job.delay,
        "max_attempts": job.max_attempts,
        "tenant": job.tenant,
        "parent": job.parent,
        "flow": job.flow,
        "parents": encode(job.parents, "parents") if job.parents else None,
        "timeout": job.timeout,
        "expires": job.expires,
        "expires_at": job.expires_at,
        "tags": encode(job.tags, "tags") if job.tags else None,
        "meta": job.meta,
        "window": job.idempotency_window,
        **key_terms(job),
        "schedule": job.schedule,
        "tick": job.tick,
        "channel": hint.channel,
        # Who is to wait first needs nobody now.
        "hint": hint.given and (job.run_at is not None or not job.delay),
    }
