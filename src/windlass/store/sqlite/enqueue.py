"""enqueue: store new jobs, all or none; known ids and held keys answer with the job that stands."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.admission import Birth, birth
from windlass.core.chain import rebased
from windlass.core.change import IN_LINE
from windlass.core.codec import encode
from windlass.core.expiry import expiry
from windlass.core.ids import JobId
from windlass.core.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, Enqueued, NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.errors import QueueClosed
from windlass.store.contest import Contest, places_of
from windlass.store.kinds import key_terms, kind_of, own_of
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.keys import hold, holders
from windlass.store.sqlite.line import mark_rated, move_up, seating
from windlass.store.sqlite.links import insert_links, sources_of
from windlass.store.sqlite.portions import portions
from windlass.store.sqlite.queues import make
from windlass.store.sqlite.timed import insert_timed


class Ground(msgspec.Struct, frozen=True):
    """What the store knows of a queue at one priority."""

    max_attempts: int
    timeout: Micros
    last: Micros | None
    """The rank of the last who waits there."""
    closed: bool


Grounds = dict[tuple[str, int], Ground]


def enqueue(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert what is new, all that is alike by one statement.

    An id is known while it is live, in history or under a tombstone.
    """
    if not jobs:
        return []
    grounds, standing = _survey(db, jobs)
    if not standing and _are_alike(jobs):
        return _enqueue_alike(db, jobs, grounds)
    now, contest = db.now, Contest(holders(db, places_of(jobs).values()), jobs)
    answers: list[Enqueued] = []
    fresh: dict[Any, list[NewJob]] = defaultdict(list)
    links: list[NewJob] = []
    timed: list[tuple[NewJob, Birth]] = []
    for job in jobs:
        if job.id in standing:
            answers.append(Enqueued(job.id, existing=True))
            continue
        born = _birth(job, now, grounds)
        if job.idempotency_key is not None and (holder := contest.enter(job, born.status)) is not None:
            answers.append(Enqueued(holder, existing=True))
            continue
        _check_open(job, grounds)
        standing.add(job.id)
        if job.parents:
            links.append(job)
        elif job.delay or job.run_at is not None:
            timed.append((job, born))
        else:
            fresh[kind_of(job)].append(job)
        answers.append(Enqueued(job.id))
    _insert_all(db, [(alike, _birth(alike[0], now, grounds)) for alike in fresh.values()], grounds, now)
    if timed:
        insert_timed(db, timed, lambda job, born: _common(job, born, now, grounds))
    hold(db, contest.taken)
    if links:
        stands = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True) if job.id != answer.id}
        _insert_links(db, [rebased(job, stands) for job in links], grounds, now)
    call_off(db, contest.replaced)
    return answers


def _birth(job: NewJob, now: Micros, grounds: Grounds) -> Birth:
    """One that has parents waits for them, whenever it may be due."""
    if job.parents:
        run_at = now if job.run_at is None else job.run_at
        return Birth(Status.BLOCKED, run_at, run_at)
    return birth(job, now, grounds[job.queue, job.priority].last)


def _insert_links(db: Db, links: Sequence[NewJob], grounds: Grounds, now: Micros) -> None:
    sources = sources_of(db, links)
    insert_links(db, [(job, _common(job, _birth(job, now, grounds), now, grounds)) for job in links], sources)


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether all go into one statement and none can meet another: a bulk of one task, without keys."""
    kind = kind_of(jobs[0])
    if jobs[0].parents:
        return False
    return all(kind_of(job) == kind and job.idempotency_key is None for job in jobs) and len(
        {job.id for job in jobs}
    ) == len(jobs)


def _enqueue_alike(db: Db, jobs: Sequence[NewJob], grounds: Grounds) -> list[Enqueued]:
    first, now = jobs[0], db.now
    _check_open(first, grounds)
    _insert_all(db, [(jobs, birth(first, now, grounds[first.queue, first.priority].last))], grounds, now)
    return [Enqueued(job.id) for job in jobs]


def _survey(db: Db, jobs: Sequence[NewJob]) -> tuple[Grounds, set[JobId]]:
    """The ground that the jobs come to, and which of them have been there before."""
    places = list({(job.queue, job.priority) for job in jobs})
    lowest = min(job.id for job in jobs)
    rows = db.rows("survey", {"places": array((queue, -priority) for queue, priority in places), "lowest": lowest})
    grounds: Grounds = {}
    for (queue, priority), (attempts, timeout, closed, last, _) in zip(places, rows, strict=True):
        if attempts is None:
            make(db, queue)
            attempts, timeout = DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT
        grounds[queue, priority] = Ground(attempts, timeout, last, bool(closed))
    if not rows[0][4]:
        return grounds, set()
    return grounds, {row[0] for row in db.rows("known", {"ids": array(job.id for job in jobs)})}


def _check_open(job: NewJob, grounds: Grounds) -> None:
    if grounds[job.queue, job.priority].closed:
        raise QueueClosed(job.queue)


def _insert_all(db: Db, kinds: Sequence[tuple[Sequence[NewJob], Birth]], grounds: Grounds, now: Micros) -> None:
    """Those that are due and have a key get a slot or go to its line. `now` is when they were born."""
    due = [
        (job, born.rank)
        for alike, born in kinds
        if born.status is Status.PENDING
        for job in alike
        if job.concurrency_key is not None
    ]
    seats = seating(db, due)
    for alike, born in kinds:
        common = _common(alike[0], born, now, grounds)
        if born.status is not Status.PENDING or not due:
            _insert(db, alike, common, {})
            continue
        _insert(
            db, [job for job in alike if job.concurrency_key is None or job.id in seats.slots], common, seats.slots
        )
        in_line = [job for job in alike if job.concurrency_key is not None and job.id not in seats.slots]
        _insert(db, in_line, {**common, "status": str(Status.BLOCKED), "reason": IN_LINE}, {})
    move_up(db, seats.overtaken)
    mark_rated(db, {job.queue for job, _ in due if job.key_rate is not None and job.id in seats.slots})


def _insert(db: Db, alike: Sequence[NewJob], common: dict[str, Any], slots: Mapping[JobId, int]) -> None:
    for portion in portions(alike):
        rows = ((*own_of(job), slots.get(job.id)) for job in portion) if slots else map(own_of, portion)
        db.run("enqueue", {**common, "batch": array(rows), "seated": bool(slots)})


def _common(job: NewJob, born: Birth, now: Micros, grounds: Grounds) -> dict[str, Any]:
    ground = grounds[job.queue, job.priority]
    return {
        "queue": job.queue,
        "type": job.type,
        "status": str(born.status),
        "reason": None,
        "urgency": -job.priority,
        "rank": born.rank,
        "run_at": born.run_at,
        "max_attempts": job.max_attempts or ground.max_attempts,
        "now": now,
        "tenant": job.tenant,
        "parent": job.parent,
        "flow": job.flow,
        "parents": encode(job.parents, "parents") if job.parents else None,
        "timeout": ground.timeout if job.timeout is None else job.timeout,
        "expires_at": expiry(job, now),
        "tags": encode(job.tags, "tags") if job.tags else None,
        "meta": job.meta,
        "window": job.idempotency_window,
        "schedule": job.schedule,
        "tick": job.tick,
        **key_terms(job),
    }
