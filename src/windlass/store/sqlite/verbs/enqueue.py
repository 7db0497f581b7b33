"""enqueue: store new jobs, all or none; known ids and key conflicts return the existing job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from windlass.core.codec import encode
from windlass.core.ids import LENGTH, JobId
from windlass.core.jobs.admission import InitialState, expiry, initial_state
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.jobs.dependencies import with_existing_parents
from windlass.core.jobs.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, Enqueued, NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.errors import QueueClosed
from windlass.store.drive import drive
from windlass.store.keys import KeyConflicts, key_refs
from windlass.store.rows import PER_JOB, key_columns, per_job_values, shared_values
from windlass.store.sql.queues import add_missing
from windlass.store.sqlite.db import Db, SharedDb, array
from windlass.store.sqlite.limits.idempotency_keys import hold, holders
from windlass.store.sqlite.limits.key_queue import (
    NO_KEY_SLOTS,
    KeySlotAssignment,
    assign_free_key_slots,
    key_slots_for_new,
    mark_rated,
)
from windlass.store.sqlite.verbs.cancel import cancel_waiting
from windlass.store.sqlite.verbs.dependents import insert_dependents, parent_states
from windlass.store.sqlite.verbs.enqueue_one import enqueue_one, is_plain

MAX_JOBS_IN_STATEMENT = 10_000
MAX_BYTES_IN_STATEMENT = 32_000_000
"""Bounds the memory of one statement."""

_NUL = r"\u0000"
"""JSON of a character at which SQLite ends a part of a text. No JSON contains it, but a store takes any text."""

_PER_TIMED_JOB = (*PER_JOB, "run_at", "delay", "expires", "expires_at", "schedule", "tick")
_shared_timed_values = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in _PER_TIMED_JOB))


class QueueState(msgspec.Struct, frozen=True):
    """What an enqueue needs to know of a queue at one priority."""

    max_attempts: int
    timeout: Micros
    last_rank: Micros | None
    """The rank of the last pending job."""
    closed: bool


class Enqueue:
    """One call of `enqueue`: its moment, the state of the queues, and the known ids."""

    def __init__(self, db: Db, jobs: Sequence[NewJob]) -> None:
        self.db = db
        self.now = db.now
        self.queues, self.known = _queue_states(db, jobs)

    def initial_state(self, job: NewJob) -> InitialState:
        """The state of a new job; a job with parents is blocked, whatever its time."""
        if job.parents:
            run_at = self.now if job.run_at is None else job.run_at
            return InitialState(Status.BLOCKED, run_at, run_at)
        return initial_state(job, self.now, self.queues[job.queue, job.priority].last_rank)

    def check_open(self, job: NewJob) -> None:
        if self.queues[job.queue, job.priority].closed:
            raise QueueClosed(job.queue)

    def shared_columns(self, job: NewJob, state: InitialState) -> dict[str, Any]:
        """The columns that all jobs of one statement share."""
        queue = self.queues[job.queue, job.priority]
        return {
            "queue": job.queue,
            "type": job.type,
            "status": str(state.status),
            "reason": None,
            "sort_priority": -job.priority,
            "rank": state.rank,
            "run_at": state.run_at,
            "max_attempts": job.max_attempts or queue.max_attempts,
            "now": self.now,
            "tenant": job.tenant,
            "parent": job.parent,
            "flow": job.flow,
            "parents": encode(job.parents, "parents") if job.parents else None,
            "timeout": queue.timeout if job.timeout is None else job.timeout,
            "expires_at": expiry(job, self.now),
            "tags": encode(job.tags, "tags") if job.tags else None,
            "meta": job.meta,
            "window": job.idempotency_window,
            "schedule": job.schedule,
            "tick": job.tick,
            **key_columns(job),
        }


def enqueue(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert new jobs, alike ones by one statement. An id is known if it is live, in history, or a tombstone."""
    if not jobs:
        return []
    if len(jobs) == 1 and is_plain(jobs[0]) and enqueue_one(db, jobs[0]):
        return [Enqueued(jobs[0].id)]
    call = Enqueue(db, jobs)
    if not call.known and _are_alike(jobs):
        call.check_open(jobs[0])
        _insert_all(call, [(jobs, call.initial_state(jobs[0]))])
        return [Enqueued(job.id) for job in jobs]
    return _enqueue_each(call, jobs)


def _enqueue_each(call: Enqueue, jobs: Sequence[NewJob]) -> list[Enqueued]:
    db, conflicts = call.db, KeyConflicts(holders(call.db, key_refs(jobs).values()), jobs)
    answers: list[Enqueued] = []
    alike: dict[Any, list[NewJob]] = defaultdict(list)
    dependents: list[NewJob] = []
    timed: list[tuple[NewJob, InitialState]] = []
    last, same = None, list[NewJob]()
    for job in jobs:
        if job.id in call.known:
            answers.append(Enqueued(job.id, existing=True))
            continue
        if job.idempotency_key is None and not job.parents and not job.delay and job.run_at is None:
            # Nearly always the same as the job before, as in a group.
            if (shared := shared_values(job)) != last:
                call.check_open(job)
                last, same = shared, alike[shared]
            same.append(job)
            call.known.add(job.id)
            answers.append(Enqueued(job.id))
            continue
        state = call.initial_state(job)
        if job.idempotency_key is not None and (holder := conflicts.enter(job, state.status)) is not None:
            answers.append(Enqueued(holder, existing=True))
            continue
        call.check_open(job)
        call.known.add(job.id)
        if job.parents:
            dependents.append(job)
        elif job.delay or job.run_at is not None:
            timed.append((job, state))
        else:
            alike[shared_values(job)].append(job)
        answers.append(Enqueued(job.id))
    _insert_all(call, [(group, call.initial_state(group[0])) for group in alike.values()])
    if timed:
        _insert_timed(call, timed)
    hold(db, conflicts.taken)
    if dependents:
        existing = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True) if job.id != answer.id}
        _insert_dependents(call, [with_existing_parents(job, existing) for job in dependents])
    cancel_waiting(db, conflicts.replaced)
    return answers


def _queue_states(db: Db, jobs: Sequence[NewJob]) -> tuple[dict[tuple[str, int], QueueState], set[JobId]]:
    """The states of the queues of the jobs, and the ids that are known already."""
    wanted = list({(job.queue, job.priority) for job in jobs})
    lowest = min([job.id for job in jobs])
    pairs = array([(queue, -priority) for queue, priority in wanted])
    rows = db.rows("queue_states", {"wanted": pairs, "lowest": lowest})
    states: dict[tuple[str, int], QueueState] = {}
    for (queue, priority), (attempts, timeout, closed, last_rank, _) in zip(wanted, rows, strict=True):
        if attempts is None:
            drive(add_missing(SharedDb(db), [queue]))
            attempts, timeout = DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT
        states[queue, priority] = QueueState(attempts, timeout, last_rank, bool(closed))
    if not rows[0][4]:
        return states, set()
    return states, {row[0] for row in db.rows("known_ids", {"ids": array(job.id for job in jobs)})}


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement can insert all, and no two conflict: jobs of one task without keys or parents."""
    if jobs[0].parents or jobs[0].idempotency_key is not None:
        return False
    if len(jobs) == 1:
        return True
    shared = shared_values(jobs[0])
    return all(shared_values(job) == shared and job.idempotency_key is None for job in jobs) and len(
        {job.id for job in jobs}
    ) == len(jobs)


def _insert_all(call: Enqueue, groups: Sequence[tuple[Sequence[NewJob], InitialState]]) -> None:
    """Insert groups of alike jobs; due jobs with a concurrency key get a key slot, or wait for the key."""
    due = [
        (job, state.rank)
        for group, state in groups
        if state.status is Status.PENDING
        for job in group
        if job.concurrency_key is not None
    ]
    assigned = key_slots_for_new(call.db, due) if due else NO_KEY_SLOTS
    for group, state in groups:
        shared = call.shared_columns(group[0], state)
        if state.status is not Status.PENDING or not due:
            _insert(call.db, group, shared, {})
            continue
        ready = [job for job in group if job.concurrency_key is None or job.id in assigned.key_slots]
        _insert(call.db, ready, shared, assigned.key_slots)
        waiting = [job for job in group if job.concurrency_key is not None and job.id not in assigned.key_slots]
        _insert(call.db, waiting, {**shared, "status": str(Status.BLOCKED), "reason": WAITING_FOR_KEY}, {})
    if due:
        _after_insert(call.db, due, assigned)


def _insert(db: Db, jobs: Sequence[NewJob], shared: dict[str, Any], key_slots: Mapping[JobId, int]) -> None:
    for part in _parts(jobs):
        if all(map(_is_unkeyed, part)) and _NUL not in (texts := array([job.id + job.payload for job in part])):
            db.run("enqueue_unkeyed", {**shared, "batch": texts})
            continue
        rows = (
            ((*per_job_values(job), key_slots.get(job.id)) for job in part)
            if key_slots
            else map(per_job_values, part)
        )
        db.run("enqueue", {**shared, "batch": array(rows), "has_key_slots": bool(key_slots)})


def _is_unkeyed(job: NewJob) -> bool:
    return job.concurrency_key is None and job.idempotency_key is None and len(job.id) == LENGTH


def _insert_timed(call: Enqueue, jobs: Sequence[tuple[NewJob, InitialState]]) -> None:
    """Insert jobs that each have their own time, such as reminders or the ticks of many schedules."""
    due = [(job, state.rank) for job, state in jobs if _needs_key_slot(job, state)]
    assigned = key_slots_for_new(call.db, due)
    states = {job.id: state for job, state in jobs}
    alike: dict[Any, list[NewJob]] = defaultdict(list)
    for job, _ in jobs:
        alike[_shared_timed_values(job)].append(job)
    for group in alike.values():
        shared = call.shared_columns(group[0], states[group[0].id])
        for part in _parts(group):
            rows = [_timed_row(job, states[job.id], assigned.key_slots.get(job.id), call.now) for job in part]
            call.db.run("enqueue_timed", {**shared, "batch": array(rows)})
    _after_insert(call.db, due, assigned)


def _needs_key_slot(job: NewJob, state: InitialState) -> bool:
    return state.status is Status.PENDING and job.concurrency_key is not None


def _timed_row(job: NewJob, state: InitialState, key_slot: int | None, now: Micros) -> tuple[Any, ...]:
    waits = _needs_key_slot(job, state) and key_slot is None
    status, reason = (Status.BLOCKED, WAITING_FOR_KEY) if waits else (state.status, None)
    times = (state.rank, state.run_at, expiry(job, now))
    return (*per_job_values(job), key_slot, str(status), reason, *times, job.schedule, job.tick)


def _after_insert(db: Db, due: Sequence[tuple[NewJob, Micros]], assigned: KeySlotAssignment) -> None:
    assign_free_key_slots(db, assigned.overtaken)
    mark_rated(db, {job.queue for job, _ in due if job.key_rate is not None and job.id in assigned.key_slots})


def _insert_dependents(call: Enqueue, dependents: Sequence[NewJob]) -> None:
    states = parent_states(call.db, dependents)
    rows = [(job, call.shared_columns(job, call.initial_state(job))) for job in dependents]
    insert_dependents(call.db, rows, states)


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """The jobs in parts that each fit into one statement."""
    if len(jobs) == 1:
        yield jobs
        return
    longest = max((len(job.payload) for job in jobs), default=0)
    step = max(1, min(MAX_JOBS_IN_STATEMENT, MAX_BYTES_IN_STATEMENT // (longest + 1)))
    for start in range(0, len(jobs), step):
        yield jobs[start : start + step]
