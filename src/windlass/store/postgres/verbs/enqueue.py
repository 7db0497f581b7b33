"""enqueue: store new jobs, all or none; known ids and key conflicts return the existing job."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from windlass.store.postgres.connection.db import Db
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
from windlass.store.postgres.verbs.plain_job import common_values, is_plain, own_values, plain_values, row_values
from windlass.store.postgres.verbs.timed import is_timed, statement_of, times_of
from windlass.store.rows import shared_values
from windlass.store.sql.queues import add_missing, queue

MAX_IN_STATEMENT = 10_000
MAX_TEXT = 32_000_000
"""Characters of payload in one statement."""
MAX_KINDS = 10
"""Kinds of jobs that get a statement of their own, which costs least per job; others share `enqueue_rows`."""
MIN_ALIKE = 50
"""In a bulk of more kinds, a kind with fewer jobs is not worth a statement of its own."""


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement can store all: new jobs of one task, without idempotency keys or parents."""
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
    """Store alike jobs by one statement; returns None, and stores nothing, if that is not possible.

    Then the watermark is missing, the queue is closed, or an id is not new.
    """
    try:
        if len(jobs) == 1 and is_plain(jobs[0]):
            stored = await db.run("enqueue_one", plain_values(jobs[0], hint))
        else:
            stored = await _store(db, {**common_values(jobs[0], hint), **own_values(jobs)})
    except asyncpg.UniqueViolationError:
        return None
    return [Enqueued(job.id) for job in jobs] if stored else None


class Sorted(NamedTuple):
    """The jobs of an enqueue: the answers, and the new jobs by statement."""

    answers: list[Enqueued]
    alike: list[list[NewJob]]
    """New jobs grouped by statement, and by whether other jobs wait for them; dependents come last."""
    rows: list[NewJob]
    """Jobs that `enqueue_rows` stores together although they differ: those of ticks, and of bulks of many kinds."""
    dependents: list[NewJob]
    awaited: set[JobId]
    """The parents of the dependents."""


async def enqueue(db: Db, jobs: Sequence[NewJob], hint: Hint) -> list[Enqueued]:
    """Store any jobs; needs a transaction. An id is known if it is live, in history, or a tombstone."""
    if not jobs:
        return []
    await _add_watermarks(db, jobs)
    # Lock parents before any key is taken, because settlements too lock a job's row first, then its key.
    outside = parents_of(jobs).difference(job.id for job in jobs)
    known_parents = KnownParents(await lock_parents(db, outside) if outside else {})
    existing = await _existing(db, jobs)
    conflicts, claimed = await _key_conflicts(db, [job for job in jobs if job.id not in existing])
    new = _sort(jobs, existing, conflicts)
    late = await _store_all(db, new, known_parents, hint)
    # Keys before dependencies and cancels: a dependent that is cancelled at once must free its key, and a replaced
    # job must not free the key that it has lost.
    await hand_over(db, {ref: id_ for ref, id_ in conflicts.taken.items() if id_ not in late})
    await _give_up_keys(db, conflicts, claimed, late)
    await _add_dependencies(db, [job for job in new.dependents if job.id not in late], known_parents, hint)
    unmoved = late | {id_ for id_, why in conflicts.replaced.items() if why in set(map(replaced_by, late))}
    await cancel_with_dependents(db, {id_: why for id_, why in conflicts.replaced.items() if id_ not in unmoved})
    return [Enqueued(each.id, existing=True) if each.id in late else each for each in new.answers]


def _sort(jobs: Sequence[NewJob], existing: set[JobId], conflicts: KeyConflicts) -> Sorted:
    """Sort out known ids and key conflicts, which return the existing job; its new dependents wait for that one."""
    answers: list[Enqueued] = []
    plain: list[NewJob] = []
    links: list[NewJob] = []
    ticks: list[NewJob] = []
    existing_ids: dict[JobId, JobId] = {}
    for job in jobs:
        holder: JobId | None = job.id if job.id in existing else None
        if holder is None and job.idempotency_key is not None:
            holder = conflicts.enter(job, Status.BLOCKED if job.parents else Status.PENDING)
        answers.append(Enqueued(holder or job.id, existing=holder is not None))
        if holder is not None:
            if holder != job.id:
                existing_ids[job.id] = holder
            continue
        existing.add(job.id)
        if job.parents:
            links.append(job)
        elif job.tick is not None:
            ticks.append(job)
        else:
            plain.append(job)
    dependents = [with_existing_parents(job, existing_ids) for job in links]
    awaited = parents_of(dependents)
    kinds: dict[Any, list[NewJob]] = defaultdict(list)
    for job in plain:
        kinds[statement_of(job), job.id in awaited].append(job)
    alike, others = _by_statement([*kinds.values(), *by_kind(dependents)])
    return Sorted(answers, alike, [*ticks, *others], dependents, awaited)


def _by_statement(kinds: list[list[NewJob]]) -> tuple[list[list[NewJob]], list[NewJob]]:
    """The kinds that get a statement of their own, and the jobs of all others, so that statements are always few."""
    if len(kinds) <= MAX_KINDS:
        return kinds, []
    largest = sorted((len(alike) for alike in kinds if len(alike) >= MIN_ALIKE), reverse=True)[:MAX_KINDS]
    alike, others = list[list[NewJob]](), list[NewJob]()
    for kind in kinds:
        if largest and len(kind) >= largest[-1] and len(alike) < MAX_KINDS:
            alike.append(kind)
        else:
            others += kind
    return alike, others


async def _store_all(db: Db, new: Sorted, known_parents: KnownParents, hint: Hint) -> set[JobId]:
    """Store the new jobs; returns the ids of those that existed after all."""
    late = set[JobId]()
    for alike in new.alike:
        for part in _parts(alike):
            if part[0].parents:
                late |= await _insert_links(db, part, new.awaited, hint)
            else:
                late |= await _insert(db, part, hint, awaited=part[0].id in new.awaited)
    for part in _parts(new.rows):
        late |= await _insert_rows(db, part, new.awaited, hint)
    every = [job for alike in (*new.alike, new.rows) for job in alike if job.id not in late]
    late |= await _drop_ended(db, [job.id for job in every if not job.fresh])
    if new.dependents:
        known_parents.admit([job for job in every if not job.parents and job.id not in late], new.awaited)
    return late


async def _add_watermarks(db: Db, jobs: Sequence[NewJob]) -> None:
    levels = sorted({(job.queue, -job.priority) for job in jobs})
    await add_missing(db, {name for name, _ in levels})
    await watermarks.add_watermarks(db, levels)


async def _existing(db: Db, jobs: Sequence[NewJob]) -> set[JobId]:
    """The known ids. Fresh ids cannot be known, and those of ticks rarely are: for these the insert finds out."""
    ids = [job.id for job in jobs if not job.fresh and job.tick is None]
    return {row[0] for row in await db.rows("existing_ids", {"ids": ids})} if ids else set()


async def _key_conflicts(db: Db, jobs: Sequence[NewJob]) -> tuple[KeyConflicts, dict[KeyRef, JobId]]:
    """Resolve key conflicts; also returns the keys that were taken, some of which may have to be given up."""
    keyed = [job for job in jobs if job.idempotency_key is not None]
    refs = key_refs(keyed)
    wanted: dict[KeyRef, JobId] = {}
    giving_way = set()
    for job in keyed:
        ref = refs[job.queue, job.idempotency_key or ""]
        wanted.setdefault(ref, job.id)
        if job.on_conflict is OnConflict.REPLACE:
            giving_way.add(ref)
    held = await claim_keys(db, wanted, giving_way) if wanted else {}
    return KeyConflicts(held, keyed), {ref: id_ for ref, id_ in wanted.items() if ref not in held}


async def _give_up_keys(db: Db, conflicts: KeyConflicts, claimed: Mapping[KeyRef, JobId], late: set[JobId]) -> None:
    """Free the keys that were taken for jobs that are not stored, because they existed or came twice in the call."""
    given_up = {ref: id_ for ref, id_ in claimed.items() if ref not in conflicts.taken}
    given_up |= {ref: id_ for ref, id_ in conflicts.taken.items() if id_ in late}
    if given_up:
        await give_up(db, given_up)


async def _insert(db: Db, alike: Sequence[NewJob], hint: Hint, *, awaited: bool) -> set[JobId]:
    """Store alike jobs; returns the ids of those that were live already."""
    values = {**common_values(alike[0], hint), "has_dependents": awaited, **own_values(alike), **_times(alike, hint)}
    if alike[0].fresh:
        if not await _store(db, values):
            raise await _refused(db, alike[0])
        return set()
    ((there, stored, _),) = await db.rows("enqueue_known", values)
    if not there:
        raise await _refused(db, alike[0])
    return _others(alike, stored)


async def _insert_rows(db: Db, jobs: Sequence[NewJob], awaited: Collection[JobId], hint: Hint) -> set[JobId]:
    """The same for jobs that differ, among which may be dependents."""
    rows = [row_values(job, hint, has_dependents=job.id in awaited) for job in jobs]
    values = {"jobs": encode(rows, "jobs"), "channel": hint.channel, "hint": hint.given}
    ((refused, stored, _),) = await db.rows("enqueue_rows", values)
    if refused is not None:
        raise await _refused(db, next(job for job in jobs if job.id == refused))
    return _others(jobs, stored)


async def _insert_links(db: Db, alike: Sequence[NewJob], awaited: Collection[JobId], hint: Hint) -> set[JobId]:
    """The same for dependents of one kind."""
    values = {**common_values(alike[0], hint), **own_values(alike), **dependent_columns(alike, awaited)}
    ((there, stored),) = await db.rows("enqueue_dependents", values)
    if not there:
        raise await _refused(db, alike[0])
    return _others(alike, stored)


def _others(jobs: Sequence[NewJob], stored: Sequence[JobId] | None) -> set[JobId]:
    return {job.id for job in jobs}.difference(stored or ())


async def _add_dependencies(db: Db, links: Sequence[NewJob], known_parents: KnownParents, hint: Hint) -> None:
    """Make the stored dependents wait for their parents; wake workers if some may run at once."""
    if await add_dependencies(db, links, known_parents) and hint.given:
        await db.rows("notify", {"channel": hint.channel, "queues": sorted({job.queue for job in links})})


async def _drop_ended(db: Db, ids: Sequence[JobId]) -> set[JobId]:
    """Delete stored jobs whose ids turn out to have ended before; returns those ids."""
    ended = {row[0] for row in await db.rows("ended_ids", {"ids": ids})} if ids else set[JobId]()
    if ended:
        await db.run("drop_new", {"ids": sorted(ended)})
    return ended


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """The jobs in parts that each fit into one statement."""
    longest = max((len(job.payload) for job in jobs), default=0)
    step = max(1, min(MAX_IN_STATEMENT, MAX_TEXT // (longest + 1)))
    for start in range(0, len(jobs), step):
        yield jobs[start : start + step]


async def _store(db: Db, values: Mapping[str, Any]) -> int:
    """Store alike jobs, by a faster statement if they have no concurrency keys; returns how many were stored."""
    if "run_ats" in values:
        return await db.run("enqueue_at_times", values)
    return await db.run("enqueue" if values["concurrency_keys"] is None else "enqueue_keyed", values)


def _times(jobs: Sequence[NewJob], hint: Hint) -> Mapping[str, Any]:
    """The jobs' own times, and whether to send the hint: a job with a `run_at` may be due at once."""
    if not is_timed(jobs[0]):
        return {}
    return {**times_of(jobs), "hint": any(job.run_at is not None for job in jobs) and hint.given}


async def _refused(db: Db, job: NewJob) -> QueueClosed | StoreUnavailable:
    """The error that says why nothing was stored: the queue is closed, or its watermark is missing."""
    if (await queue(db, job.queue)).closed:
        return QueueClosed(job.queue)
    return StoreUnavailable(f"queue {job.queue!r} at priority {job.priority} is gone; nothing was stored")
