"""enqueue: store new jobs, all or none; known ids and held keys answer with the job that stands."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import asyncpg

from windlass.core.chain import rebased
from windlass.core.codec import encode
from windlass.core.idempotency import OnConflict, replaced_by
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, NewJob
from windlass.core.status import Status
from windlass.errors import QueueClosed, StoreUnavailable
from windlass.store.contest import Contest, places_of
from windlass.store.keys import Place
from windlass.store.kinds import OWN, key_terms, kind_of, own_of
from windlass.store.postgres import packing
from windlass.store.postgres.db import Db
from windlass.store.postgres.heirs import call_off
from windlass.store.postgres.keys import claim_keys, give_up, hand_over
from windlass.store.postgres.links import Family, by_kind, hold_parents, linked, parents_of, tie
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
    """Whether all go into one statement and none can meet another: new jobs of one task, without keys or parents."""
    first = jobs[0]
    if not first.fresh or first.idempotency_key is not None or first.parents or len(jobs) > MOST_IN_STATEMENT:
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


class Sorted(NamedTuple):
    """The jobs of a hand-in: what each is answered with, and those that are new, by the way in which they go."""

    answers: list[Enqueued]
    plain: dict[Any, list[NewJob]]
    """What goes into one statement, by what that is; those for whom others wait are apart."""
    ticks: list[NewJob]
    links: list[NewJob]


async def enqueue(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued]:
    """In a transaction: whatever they are. An id is known while it is live, in history or under a tombstone."""
    if not jobs:
        return []
    await _make_places(db, jobs)
    # Before any key is taken: who ends a job has its row first, and then its key.
    outside = parents_of(jobs).difference(job.id for job in jobs)
    family = Family(await hold_parents(db, outside) if outside else {})
    standing = await _standing(db, jobs)
    contest, claimed = await _contest(db, [job for job in jobs if job.id not in standing])
    new = _sort(jobs, standing, contest)
    late = await _store_all(db, new, family, hint)
    # First the keys: those who are replaced then have none to release.
    await hand_over(db, {place: id_ for place, id_ in contest.taken.items() if id_ not in late})
    await _give_up_keys(db, contest, claimed, late)
    unmoved = late | {id_ for id_, why in contest.replaced.items() if why in set(map(replaced_by, late))}
    await call_off(db, {id_: why for id_, why in contest.replaced.items() if id_ not in unmoved})
    return [Enqueued(each.id, existing=True) if each.id in late else each for each in new.answers]


def _sort(jobs: Sequence[NewJob], standing: set[JobId], contest: Contest) -> Sorted:
    """Who is known, or meets another with his key, is answered with who stands; links wait for that one then."""
    wanted = parents_of(jobs)
    new = Sorted([], defaultdict(list), [], [])
    stands: dict[JobId, JobId] = {}
    for job in jobs:
        holder: JobId | None = job.id if job.id in standing else None
        if holder is None and job.idempotency_key is not None:
            holder = contest.enter(job, Status.BLOCKED if job.parents else Status.PENDING)
        new.answers.append(Enqueued(holder or job.id, existing=holder is not None))
        if holder is not None:
            if holder != job.id:
                stands[job.id] = holder
            continue
        standing.add(job.id)
        if job.parents:
            new.links.append(job)
        elif job.tick is not None:
            new.ticks.append(job)
        else:
            new.plain[statement_of(job), job.id in wanted].append(job)
    return new._replace(links=[rebased(job, stands) for job in new.links])


async def _store_all(db: Db, new: Sorted, family: Family, hint: Hint) -> set[JobId]:
    """Store them; which of them had been there before after all."""
    late: set[JobId] = set()
    for (_, awaited), alike in new.plain.items():
        late |= await _insert(db, alike, hint, awaited=awaited)
        if new.links:
            family.admit((job for job in alike if job.id not in late), marked=awaited)
    for some in _parts(new.ticks):
        late |= await _insert_ticks(db, some, hint)
    if new.links:
        late |= await _insert_links(db, new.links, family, hint)
    return late


async def _make_places(db: Db, jobs: Sequence[NewJob]) -> None:
    places = sorted({(job.queue, -job.priority) for job in jobs})
    await make_if_new(db, sorted({queue for queue, _ in places}))
    columns = {"queues": [queue for queue, _ in places], "urgencies": [urgency for _, urgency in places]}
    await db.run("make_places", columns)


async def _standing(db: Db, jobs: Sequence[NewJob]) -> set[JobId]:
    """Which of them are known: new ids cannot be, others may be. Those of ticks hardly ever are: the insert tells."""
    ids = [job.id for job in jobs if not job.fresh and job.tick is None]
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


async def _insert(db: Db, alike: Sequence[NewJob], hint: Hint, *, awaited: bool) -> set[JobId]:
    """Store them; which of them had been there before after all, handed in by somebody else at the same moment."""
    common, late = {**_common(alike[0], hint), "heirs": awaited}, set()
    for part in _parts(alike):
        if part[0].fresh:
            if not await _store(db, {**common, **_own(part), **_times(part, hint)}):
                raise await _refused(db, part[0])
            continue
        ((there, stored, _),) = await db.rows("enqueue_again", {**common, **_own(part)})
        if not there:
            raise await _refused(db, part[0])
        late |= await _late(db, part, stored or [])
    return late


async def _insert_ticks(db: Db, ticks: Sequence[NewJob], hint: Hint) -> set[JobId]:
    """The same for jobs of ticks, of which no two are alike."""
    rows = [{name: value for name, value in _row(job, hint).items() if value is not None} for job in ticks]
    values = {"jobs": encode(rows, "jobs"), "channel": hint.channel, "hint": hint.given}
    ((refused, stored, _),) = await db.rows("enqueue_ticks", values)
    if refused is not None:
        raise await _refused(db, next(job for job in ticks if job.id == refused))
    return await _late(db, ticks, stored or [])


async def _insert_links(db: Db, links: Sequence[NewJob], family: Family, hint: Hint) -> set[JobId]:
    """The same for those who wait for others, with whom they wait for; who need not wait after all may run."""
    awaited, late = parents_of(links), set()
    for alike in by_kind(links):
        common = _common(alike[0], hint)
        for part in _parts(alike):
            ((there, stored),) = await db.rows("enqueue_links", {**common, **_own(part), **linked(part, awaited)})
            if not there:
                raise await _refused(db, part[0])
            late |= await _late(db, part, stored or [])
    if await tie(db, [job for job in links if job.id not in late], family) and hint.given:
        queues = sorted({job.queue for job in links})
        await db.rows("notify", {"channel": hint.channel, "queues": queues})
    return late


async def _late(db: Db, part: Sequence[NewJob], stored: Sequence[JobId]) -> set[JobId]:
    """Those of them that were there before, living or not."""
    over = {row[0] for row in await db.rows("known", {"ids": stored})} if not part[0].fresh else set()
    if over:
        await db.run("drop_new", {"ids": sorted(over)})
    return {job.id for job in part}.difference(stored) | over


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """As many together as one statement may carry."""
    longest = max((len(job.payload) for job in jobs), default=0)
    step = max(1, min(MOST_IN_STATEMENT, MOST_TEXT // (longest + 1)))
    for start in range(0, len(jobs), step):
        yield jobs[start : start + step]


async def _store(db: Db, values: Mapping[str, Any]) -> int:
    """Those without concurrency keys by a statement that knows of none, and is as fast as can be."""
    if "run_ats" in values:
        return await db.run("enqueue_timed", values)
    return await db.run("enqueue" if values["concurrency_keys"] is None else "enqueue_keyed", values)


def _times(jobs: Sequence[NewJob], hint: Hint) -> Mapping[str, Any]:
    """What they have of their own if it is their time; who says a moment may be due at once."""
    if not is_timed(jobs[0]):
        return {}
    return {**times_of(jobs), "hint": any(job.run_at is not None for job in jobs) and hint.given}


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


def _row(job: NewJob, hint: Hint) -> dict[str, Any]:
    """All of one job."""
    own = dict(zip(OWN, own_of(job), strict=True))
    return {**_common(job, hint), **own}


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
        "heirs": False,
        "channel": hint.channel,
        # Who is to wait first needs nobody now.
        "hint": hint.given and (job.run_at is not None or not job.delay),
    }
