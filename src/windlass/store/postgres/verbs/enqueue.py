"""enqueue: store new jobs, all or none; known ids and key conflicts return the existing job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import asyncpg

from windlass.core.codec import encode
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import with_existing_parents
from windlass.core.jobs.idempotency import OnConflict, replaced_by
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.status import Status
from windlass.errors import QueueClosed, StoreUnavailable
from windlass.store.keys import KeyConflicts, KeyRef, key_refs
from windlass.store.postgres.connection.db import Db, pack_ids, pack_texts
from windlass.store.postgres.connection.hints import Hint
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.limits.idempotency_keys import claim_keys, give_up, hand_over
from windlass.store.postgres.verbs.dependents import cancel_with_dependents
from windlass.store.postgres.verbs.parents import (
    KnownParents,
    add_dependencies,
    by_kind,
    dependent_columns,
    lock_parents,
    parents_of,
)
from windlass.store.postgres.verbs.plain_job import is_plain, option_values, plain_values
from windlass.store.postgres.verbs.timed import is_timed, statement_of, times_of
from windlass.store.rows import PER_JOB, key_columns, per_job_values, shared_values
from windlass.store.sql.queues import add_missing, queue

MAX_IN_STATEMENT = 10_000
MAX_TEXT = 32_000_000
"""Characters of payload in one statement."""


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement is enough: new jobs of one task, without keys or parents."""
    first = jobs[0]
    if not first.fresh or first.idempotency_key is not None or first.parents or len(jobs) > MAX_IN_STATEMENT:
        return False
    if len(jobs) == 1:
        return True
    if sum(len(job.payload) for job in jobs) > MAX_TEXT:
        return False
    kind = shared_values(first)
    return all(shared_values(job) == kind and job.idempotency_key is None for job in jobs)


async def enqueue_alike(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued] | None:
    """One statement; None, and nothing stored, if that is not enough:

    the watermark must be added first, the queue is closed, or an id is not new.
    """
    try:
        if len(jobs) == 1 and is_plain(jobs[0]):
            stored = await db.run("enqueue_one", plain_values(jobs[0], hint))
        else:
            stored = await _store(db, {**_common(jobs[0], hint), **_own(jobs)})
    except asyncpg.UniqueViolationError:
        return None
    return [Enqueued(job.id) for job in jobs] if stored else None


class Sorted(NamedTuple):
    """The jobs of an enqueue: the answers, and the new jobs by statement."""

    answers: list[Enqueued]
    plain: dict[Any, list[NewJob]]
    """Grouped by statement, and by whether other jobs wait for them."""
    ticks: list[NewJob]
    links: list[NewJob]


async def enqueue(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued]:
    """All kinds of jobs, in a transaction. An id is known while it is live, in history or under a tombstone."""
    if not jobs:
        return []
    await _make_places(db, jobs)
    # Before any key is taken: settlements lock the job's row first, then its key.
    outside = parents_of(jobs).difference(job.id for job in jobs)
    known_parents = KnownParents(await lock_parents(db, outside) if outside else {})
    existing = await _existing(db, jobs)
    conflicts, claimed = await _key_conflicts(db, [job for job in jobs if job.id not in existing])
    new = _sort(jobs, existing, conflicts)
    late = await _store_all(db, new, known_parents, hint)
    # Keys first: a dependent that is cancelled at once releases its own; a replaced job then has none to release.
    await hand_over(db, {place: id_ for place, id_ in conflicts.taken.items() if id_ not in late})
    await _give_up_keys(db, conflicts, claimed, late)
    await _add_dependencies(db, [job for job in new.links if job.id not in late], known_parents, hint)
    unmoved = late | {id_ for id_, why in conflicts.replaced.items() if why in set(map(replaced_by, late))}
    await cancel_with_dependents(db, {id_: why for id_, why in conflicts.replaced.items() if id_ not in unmoved})
    return [Enqueued(each.id, existing=True) if each.id in late else each for each in new.answers]


def _sort(jobs: Sequence[NewJob], existing: set[JobId], conflicts: KeyConflicts) -> Sorted:
    """Known ids and key conflicts return the existing job; dependents then wait for that one."""
    wanted = parents_of(jobs)
    new = Sorted([], defaultdict(list), [], [])
    existing_ids: dict[JobId, JobId] = {}
    for job in jobs:
        holder: JobId | None = job.id if job.id in existing else None
        if holder is None and job.idempotency_key is not None:
            holder = conflicts.enter(job, Status.BLOCKED if job.parents else Status.PENDING)
        new.answers.append(Enqueued(holder or job.id, existing=holder is not None))
        if holder is not None:
            if holder != job.id:
                existing_ids[job.id] = holder
            continue
        existing.add(job.id)
        if job.parents:
            new.links.append(job)
        elif job.tick is not None:
            new.ticks.append(job)
        else:
            new.plain[statement_of(job), job.id in wanted].append(job)
    return new._replace(links=[with_existing_parents(job, existing_ids) for job in new.links])


async def _store_all(db: Db, new: Sorted, known_parents: KnownParents, hint: Hint) -> set[JobId]:
    """Store them; returns those that existed after all."""
    late: set[JobId] = set()
    for (_, awaited), alike in new.plain.items():
        late |= await _insert(db, alike, hint, awaited=awaited)
        if new.links:
            known_parents.admit((job for job in alike if job.id not in late), marked=awaited)
    for some in _parts(new.ticks):
        late |= await _insert_ticks(db, some, hint)
    if new.links:
        late |= await _insert_links(db, new.links, hint)
    return late


async def _make_places(db: Db, jobs: Sequence[NewJob]) -> None:
    places = sorted({(job.queue, -job.priority) for job in jobs})
    await add_missing(db, {name for name, _ in places})
    await watermarks.make_places(db, places)


async def _existing(db: Db, jobs: Sequence[NewJob]) -> set[JobId]:
    """The known ids. New ids cannot be known; for ticks, which hardly ever are, the insert tells."""
    ids = [job.id for job in jobs if not job.fresh and job.tick is None]
    return {row[0] for row in await db.rows("existing_ids", {"ids": ids})} if ids else set()


async def _key_conflicts(db: Db, jobs: Sequence[NewJob]) -> tuple[KeyConflicts, dict[KeyRef, JobId]]:
    """Resolve key conflicts; also returns the keys that were taken, some of which must be given up."""
    keyed = [job for job in jobs if job.idempotency_key is not None]
    places = key_refs(keyed)
    wanted: dict[KeyRef, JobId] = {}
    giving_way = set()
    for job in keyed:
        place = places[job.queue, job.idempotency_key or ""]
        wanted.setdefault(place, job.id)
        if job.on_conflict is OnConflict.REPLACE:
            giving_way.add(place)
    held = await claim_keys(db, wanted, giving_way) if wanted else {}
    return KeyConflicts(held, keyed), {place: id_ for place, id_ in wanted.items() if place not in held}


async def _give_up_keys(db: Db, conflicts: KeyConflicts, claimed: Mapping[KeyRef, JobId], late: set[JobId]) -> None:
    """Give up keys taken for jobs that existed, or that came twice in one enqueue: nothing else would free them."""
    given_up = {place: id_ for place, id_ in claimed.items() if place not in conflicts.taken}
    given_up |= {place: id_ for place, id_ in conflicts.taken.items() if id_ in late}
    if given_up:
        await give_up(db, given_up)


async def _insert(db: Db, alike: Sequence[NewJob], hint: Hint, *, awaited: bool) -> set[JobId]:
    """Store them; returns those that another process stored at the same moment."""
    common, late = {**_common(alike[0], hint), "has_dependents": awaited}, set()
    for part in _parts(alike):
        if part[0].fresh:
            if not await _store(db, {**common, **_own(part), **_times(part, hint)}):
                raise await _refused(db, part[0])
            continue
        ((there, stored, _),) = await db.rows("enqueue_known", {**common, **_own(part)})
        if not there:
            raise await _refused(db, part[0])
        late |= await _existing_after_all(db, part, stored or [])
    return late


async def _insert_ticks(db: Db, ticks: Sequence[NewJob], hint: Hint) -> set[JobId]:
    """The same for jobs of ticks, which all differ."""
    rows = [{name: value for name, value in _row(job, hint).items() if value is not None} for job in ticks]
    values = {"jobs": encode(rows, "jobs"), "channel": hint.channel, "hint": hint.given}
    ((refused, stored, _),) = await db.rows("enqueue_ticks", values)
    if refused is not None:
        raise await _refused(db, next(job for job in ticks if job.id == refused))
    return await _existing_after_all(db, ticks, stored or [])


async def _insert_links(db: Db, links: Sequence[NewJob], hint: Hint) -> set[JobId]:
    """The same for dependents."""
    awaited, late = parents_of(links), set()
    for alike in by_kind(links):
        common = _common(alike[0], hint)
        for part in _parts(alike):
            ((there, stored),) = await db.rows(
                "enqueue_dependents", {**common, **_own(part), **dependent_columns(part, awaited)}
            )
            if not there:
                raise await _refused(db, part[0])
            late |= await _existing_after_all(db, part, stored or [])
    return late


async def _add_dependencies(db: Db, links: Sequence[NewJob], known_parents: KnownParents, hint: Hint) -> None:
    """Dependents wait for their parents from now on; some may run, or are cancelled, at once."""
    if await add_dependencies(db, links, known_parents) and hint.given:
        await db.rows("notify", {"channel": hint.channel, "queues": sorted({job.queue for job in links})})


async def _existing_after_all(db: Db, part: Sequence[NewJob], stored: Sequence[JobId]) -> set[JobId]:
    """Those that existed before, live or not."""
    over = {row[0] for row in await db.rows("ended_ids", {"ids": stored})} if not part[0].fresh else set()
    if over:
        await db.run("drop_new", {"ids": sorted(over)})
    return {job.id for job in part}.difference(stored) | over


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Parts that one statement may carry."""
    longest = max((len(job.payload) for job in jobs), default=0)
    step = max(1, min(MAX_IN_STATEMENT, MAX_TEXT // (longest + 1)))
    for start in range(0, len(jobs), step):
        yield jobs[start : start + step]


async def _store(db: Db, values: Mapping[str, Any]) -> int:
    """Jobs without concurrency keys by a faster statement."""
    if "run_ats" in values:
        return await db.run("enqueue_at_times", values)
    return await db.run("enqueue" if values["concurrency_keys"] is None else "enqueue_keyed", values)


def _times(jobs: Sequence[NewJob], hint: Hint) -> Mapping[str, Any]:
    """Their own times; a job with a moment may be due at once."""
    if not is_timed(jobs[0]):
        return {}
    return {**times_of(jobs), "hint": any(job.run_at is not None for job in jobs) and hint.given}


async def _refused(db: Db, job: NewJob) -> QueueClosed | StoreUnavailable:
    """Why nothing was stored: the queue is closed, or its watermark is gone."""
    if (await queue(db, job.queue)).closed:
        return QueueClosed(job.queue)
    return StoreUnavailable(f"queue {job.queue!r} at priority {job.priority} is gone; nothing was stored")


def _own(jobs: Sequence[NewJob]) -> dict[str, Any]:
    return {
        "ids": pack_ids([job.id for job in jobs]),
        "payloads": [job.payload for job in jobs],
        "keys": pack_texts([job.idempotency_key for job in jobs]),
        "concurrency_keys": pack_texts([job.concurrency_key for job in jobs]),
    }


def _row(job: NewJob, hint: Hint) -> dict[str, Any]:
    own = dict(zip(PER_JOB, per_job_values(job), strict=True))
    return {**_common(job, hint), **own}


def _common(job: NewJob, hint: Hint) -> Mapping[str, Any]:
    return {
        **option_values(job, hint),
        "parents": encode(job.parents, "parents") if job.parents else None,
        "window": job.idempotency_window,
        **key_columns(job),
        "schedule": job.schedule,
        "tick": job.tick,
        "has_dependents": False,
    }
