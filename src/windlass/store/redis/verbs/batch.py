"""New jobs as scripts take them: similar jobs are one kind, whose shared fields are sent once.

A batch is a list of kinds and an order. A kind is what `_kind` returns; parts/enqueue/enqueue_check.lua and
parts/enqueue/store_jobs.lua read it by number. Jobs with keys or parents, and those of schedules, have a blob of
fields each; others share one.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec

from windlass.core.codec import encode as to_json
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import KeyConflict, QueueClosed
from windlass.store.keys import key_ref
from windlass.store.redis.records.record import Fields, Flag, encode_fields
from windlass.store.rows import PER_JOB, shared_child_values

STORED, CLOSED, CONFLICT, PARENT_KEY_TAKEN = 0, 1, 2, 4
"""The first value of a reply."""
shared_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*PER_JOB, "schedule", "tick")))
"""The fields that jobs of one kind share."""
_timeless = attrgetter(
    *(name for name in NewJob.__struct_fields__ if name not in (*PER_JOB, "schedule", "tick", "run_at", "delay"))
)
"""The same, for jobs that may each have their own time."""
MUST_CHECK, MUST_NOTIFY = 0, 1
"""Instead of a kind in a reply."""
_ON_CONFLICT = {OnConflict.EXISTING: 0, OnConflict.REPLACE: 1, OnConflict.RAISE: 2}


class ParentKeyTaken(Exception):
    """Another job took the idempotency key of a parent that is enqueued with its children."""

    def __init__(self, stored: Collection[str] = ()) -> None:
        super().__init__()
        self.stored = set(stored)
        """Other queues that have, or may have, stored their jobs of the same call."""


class EnqueueBatch(msgspec.Struct, frozen=True):
    """Jobs for one queue, as a script takes them."""

    jobs: Sequence[NewJob]
    kinds: list[list[int]]
    """The indexes of similar jobs, kind by kind."""
    request: Any
    blobs: list[bytes]
    plain: bool
    """Whether all are similar, due at once and without conflicts: enqueue_plain.lua stores them."""

    def answers(self, reply: Sequence[Any]) -> list[Enqueued]:
        """The result for each job; raises if the batch was refused."""
        self.check(reply)
        answers = [Enqueued(job.id) for job in self.jobs]
        if len(reply) == 1:  # mostly no job exists yet
            return answers
        for kind, number, holder in zip(reply[1::3], reply[2::3], reply[3::3], strict=True):
            if kind:
                answers[self._index(kind, number)] = Enqueued(holder.decode(), existing=True)
        return answers

    def ids_to_register(self, reply: Sequence[Any]) -> list[JobId]:
        """Ids of the jobs that must register with their parents."""
        triples = zip(reply[1::3], reply[2::3], reply[3::3], strict=True)
        return [id_.decode() for kind, number, id_ in triples if not kind and number == MUST_CHECK]

    def changes_parents(self, reply: Sequence[Any]) -> bool:
        """Whether dependents must be notified (`notify_dependents`)."""
        return len(reply) > 1 and reply[-3] == 0 and reply[-2] == MUST_NOTIFY

    def check(self, reply: Sequence[Any]) -> None:
        """Raise the error for which the batch was refused."""
        if reply[0] == CLOSED:
            raise QueueClosed(self.jobs[0].queue)
        if reply[0] == PARENT_KEY_TAKEN:
            raise ParentKeyTaken
        if reply[0] == CONFLICT:
            _, kind, number, holder = reply
            key = self.jobs[self._index(kind, number)].idempotency_key
            assert key is not None
            raise KeyConflict(key, holder.decode())

    def _index(self, kind: int, number: int) -> int:
        return self.kinds[kind - 1][number - 1]


def to_batch(jobs: Sequence[NewJob]) -> EnqueueBatch:
    """Jobs of one queue, in their order."""
    if len(jobs) == 1 and _is_plain(jobs[0]):
        return EnqueueBatch(
            jobs, [[0]], ([_kind(jobs, 1, False, 0)], None), [encode_fields(fields_of(jobs[0]))], True
        )
    parents = _dependents(jobs)
    kinds = _kinds(jobs, parents)
    request: list[Any] = []
    blobs: list[bytes] = []
    for indexes in kinds:
        alike = [jobs[index] for index in indexes]
        first = alike[0]
        flags = _parent_flags(first, parents)
        own = bool(flags & Flag.ONLY_DEPENDENT) or _has_own_fields(first) or _is_linked(first, parents)
        request.append(_kind(alike, len(blobs) + 1, own, flags))
        blobs += [encode_fields(fields_of(job, parents.get(job.id))) for job in (alike if own else alike[:1])]
    order = _order(jobs, kinds)
    plain = len(kinds) == 1 and order is None and _is_plain(jobs[0])
    return EnqueueBatch(jobs, kinds, (request, order), blobs, plain)


def _dependents(jobs: Sequence[NewJob]) -> dict[JobId, JobId | None]:
    """The parents of these jobs, each with its dependent; None: it has several."""
    found: dict[JobId, JobId | None] = {}
    for job in jobs:
        for parent in dict.fromkeys(job.parents):
            found[parent] = None if parent in found else job.id
    return found


def _parent_flags(job: NewJob, parents: Mapping[JobId, JobId | None]) -> int:
    if job.id not in parents:
        return 0
    return int(Flag.HAS_DEPENDENTS if parents[job.id] is None else Flag.HAS_DEPENDENTS | Flag.ONLY_DEPENDENT)


def may_have_own_time(job: NewJob) -> bool:
    """Whether the job is for later, so that similar jobs with other times are of its kind."""
    return (
        (job.delay > 0 or job.run_at is not None)
        and not job.parents
        and job.concurrency_key is None
        and job.schedule is None
    )


def _has_own_fields(job: NewJob) -> bool:
    return job.idempotency_key is not None or job.concurrency_key is not None or job.schedule is not None


def _is_linked(job: NewJob, parents: Collection[JobId]) -> bool:
    """Whether it is a job of a chain or flow: even similar ones have their own fields."""
    return bool(parents) and (bool(job.parents) or job.flow is not None)


def _kinds(jobs: Sequence[NewJob], parents: Mapping[JobId, JobId | None]) -> list[list[int]]:
    if len(jobs) == 1:
        return [[0]]
    found: dict[Any, list[int]] = {}
    last, indexes = None, []
    for index, job in enumerate(jobs):
        shared = (_timeless(job), job.run_at is None) if may_have_own_time(job) else shared_of(job)
        kind: Any = (shared, job.idempotency_key is None, job.concurrency_key is None, job.schedule is None)
        if parents:
            alike = shared_child_values(job) if _is_linked(job, parents) else kind[0]
            parent = bool(job.parent) if job.parents else job.parent
            kind = (alike, *kind[1:], flags_of(job), parent, _parent_flags(job, parents))
        if kind != last:  # usually all are similar: comparing is cheaper than hashing
            indexes = found.setdefault(kind, [])
            last = kind
        indexes.append(index)
    return list(found.values())


def _order(jobs: Sequence[NewJob], kinds: Sequence[Sequence[int]]) -> list[int] | None:
    """Kind and number of jobs that may conflict with each other: they have a key, or their ids repeat."""
    twice = len(jobs) > 1 and len({job.id for job in jobs}) < len(jobs)
    if not twice and all(jobs[indexes[0]].idempotency_key is None for indexes in kinds):
        return None
    where = {index: (k, i) for k, indexes in enumerate(kinds, 1) for i, index in enumerate(indexes, 1)}
    meeting = (index for index, job in enumerate(jobs) if twice or job.idempotency_key is not None)
    return [number for index in meeting for number in where[index]]


def _kind(alike: Sequence[NewJob], blob: int, own: bool, parent_flags: int) -> tuple[Any, ...]:
    job = alike[0]
    return (
        flags_of(job) | parent_flags,
        job.type,
        -job.priority,
        job.run_at,
        job.delay,
        job.max_attempts,
        job.timeout,
        job.expires_at,
        job.expires,
        [each.id for each in alike],
        [each.payload for each in alike],
        blob,
        own,
        [key_ref(each.queue, each.idempotency_key or "")[1] for each in alike]
        if job.idempotency_key is not None
        else None,
        [concurrency_digest(each.concurrency_key or "") for each in alike]
        if job.concurrency_key is not None
        else None,
        _ON_CONFLICT[job.on_conflict],
        job.key_limit,
        ["".join(dict.fromkeys(each.parents)) for each in alike] if job.parents else None,
        [each.parent or False for each in alike] if job.parents else None,
        _times(alike),
    )


def _times(alike: Sequence[NewJob]) -> list[int] | None:
    """The moments or delays of jobs, if they differ."""
    first = alike[0]
    if not may_have_own_time(first):
        return None
    times = [each.delay if each.run_at is None else each.run_at for each in alike]
    return times if any(each != times[0] for each in times) else None


def _is_plain(job: NewJob) -> bool:
    return (
        not job.parents
        and job.idempotency_key is None
        and job.concurrency_key is None
        and job.parent is None
        and job.run_at is None
        and job.delay == 0
        and job.expires is None
        and job.expires_at is None
        and job.schedule is None
    )


def fields_of(job: NewJob, dependent: JobId | None = None) -> Fields:
    """The fields of a job, which never change; `dependent` is the one job that waits for it."""
    rate = job.key_rate
    return Fields(
        type=job.type,
        tenant=job.tenant,
        idempotency_key=job.idempotency_key,
        key_digest=None if job.idempotency_key is None else key_ref(job.queue, job.idempotency_key)[1],
        window=job.idempotency_window,
        concurrency_key=job.concurrency_key,
        concurrency_digest=None if job.concurrency_key is None else concurrency_digest(job.concurrency_key),
        key_limit=job.key_limit,
        key_strict=job.key_strict,
        key_rate=None if rate is None else (rate.tokens, rate.period, rate.burst),
        rate_cost=job.rate_cost,
        parent=job.parent,
        flow=job.flow,
        parents=to_json(tuple(dict.fromkeys(job.parents)), "parents") if job.parents else None,
        tags=to_json(job.tags, "tags") if job.tags else None,
        meta=job.meta,
        schedule=job.schedule,
        tick=job.tick,
        result_params=to_json(job.result_params, "result_params") if job.result_params else None,
        dependent=dependent,
    )


def concurrency_digest(key: str) -> str:
    """The digest of a concurrency key, of fixed length, so that it can prefix a member."""
    return blake2b(key.encode(), digest_size=16).hexdigest()


def flags_of(job: NewJob) -> int:
    """The flags of a new job."""
    flags = 0
    if job.idempotency_key is not None:
        flags |= Flag.HAS_IDEMPOTENCY_KEY
    if job.concurrency_key is not None:
        flags |= Flag.HAS_CONCURRENCY_KEY
    if job.key_strict:
        flags |= Flag.STRICT
    if job.key_rate is not None:
        flags |= Flag.RATED
    if job.rate_cost is not None:
        flags |= Flag.COSTLY
    if job.tenant is not None:
        flags |= Flag.HAS_TENANT
    if job.parent is not None:
        flags |= Flag.IS_CHILD
    if job.parents:
        flags |= Flag.WAITS_FOR_PARENTS
        if len(set(job.parents)) == 1:
            flags |= Flag.ONE_PARENT
        if job.result_params:
            flags |= Flag.TAKES_RESULT
        if job.when_ended:
            flags |= Flag.WHEN_ENDED
    return int(flags)  # each `|=` above makes a Flag of it
