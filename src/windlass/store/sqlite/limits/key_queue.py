"""Jobs that wait for a concurrency key.

Every verb that frees a key slot, or makes a job wait for a key, then assigns the free key slots.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from windlass.core.flow.key_slots import KeyPosition, assign_key_slots, key_position
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.sqlite.db import Db, array

FIRST_READ = 2
"""Usually one key slot is free: the first job gets it, and the second finds no other free one."""
NEXT_READ = 500

_taken = msgspec.json.Decoder(tuple[int, ...])
_head = msgspec.json.Decoder(KeyPosition)
_waiting = msgspec.json.Decoder(list[tuple[str, int | None, int]])


KeyQueue = tuple[str, str]
"""A queue and a concurrency key in it."""


class KeyUse(msgspec.Struct, frozen=True):
    """The key slots and waiting jobs of a key."""

    taken: tuple[int, ...] = ()
    head: KeyPosition | None = None
    """The position of the first waiting job."""


class KeySlotAssignment(msgspec.Struct, frozen=True):
    """The key slots of new jobs; the others wait for their key."""

    key_slots: dict[JobId, int]
    overtaken: list[KeyQueue]
    """Keys for which a new job goes before all waiting ones, and may have a higher limit than they have."""


NO_KEY_SLOTS = KeySlotAssignment({}, [])


def key_queues_of(jobs: Iterable[NewJob]) -> set[KeyQueue]:
    """The keys of these jobs."""
    return {(job.queue, job.concurrency_key) for job in jobs if job.concurrency_key is not None}


def assign(due: Iterable[tuple[NewJob, Micros]], uses: Mapping[KeyQueue, KeyUse]) -> KeySlotAssignment:
    """Assign key slots to due jobs, given with their ranks, in the order in which they would wait."""
    new_jobs: dict[KeyQueue, list[tuple[KeyPosition, int | None]]] = defaultdict(list)
    for job, rank in due:
        if job.concurrency_key is not None:
            position = key_position(-job.priority, job.key_strict, rank, job.id)
            new_jobs[job.queue, job.concurrency_key].append((position, job.key_limit))
    key_slots: dict[JobId, int] = {}
    overtaken = []
    for key_queue, waiting in new_jobs.items():
        use = uses.get(key_queue, KeyUse())
        waiting.sort()
        if use.head is None:
            given = assign_key_slots(use.taken, (limit for _, limit in waiting))
            key_slots.update(zip((id_ for (_, _, id_), _ in waiting), given, strict=False))
        elif waiting[0][0] < use.head:
            overtaken.append(key_queue)
    return KeySlotAssignment(key_slots, overtaken)


def assign_free_key_slots(db: Db, key_queues: Collection[KeyQueue]) -> None:
    """Give the free key slots of these keys to the first waiting jobs."""
    max_jobs = FIRST_READ
    while key_queues:
        key_queues, max_jobs = _assign(db, key_queues, max_jobs), NEXT_READ


def _assign(db: Db, key_queues: Collection[KeyQueue], max_jobs: int) -> list[KeyQueue]:
    """Give the free key slots to at most `max_jobs` jobs of each key; returns the keys with possibly more of both."""
    assigned: list[tuple[str, int]] = []
    rated, unfinished = set(), []
    for queue, key, taken, heads in db.rows(
        "key_queue_heads", {"key_queues": array(key_queues), "max_jobs": max_jobs}
    ):
        waiting = _waiting.decode(heads)
        free = assign_key_slots(_taken.decode(taken), (limit for _, limit, _ in waiting))
        admitted = waiting[: len(free)]
        assigned += zip((id_ for id_, _, _ in admitted), free, strict=True)
        if any(has_rate for _, _, has_rate in admitted):
            rated.add(queue)
        if len(free) == max_jobs:
            unfinished.append((queue, key))
    if assigned:
        db.run("assign_key_slots", {"batch": array(assigned), "now": db.now})
    mark_rated(db, rated)
    return unfinished


def key_slots_for_new(db: Db, due: Sequence[tuple[NewJob, Micros]]) -> KeySlotAssignment:
    """The key slots that these new jobs, given with their ranks, get at once: one read for all of their keys."""
    key_queues = key_queues_of(job for job, _ in due)
    if not key_queues:
        return NO_KEY_SLOTS
    uses = {
        (queue, key): KeyUse(_taken.decode(taken or "[]"), None if head is None else _head.decode(head))
        for queue, key, taken, head in db.rows("key_use", {"key_queues": array(key_queues)})
    }
    return assign(due, uses)


def mark_rated(db: Db, queues: Collection[str]) -> None:
    """Record that these queues have pending jobs whose key has a rate."""
    for queue in queues:
        db.run("set_rated", {"queue": queue})


def status_after_move(db: Db, id_: JobId, status: Status, key_queues: Collection[KeyQueue]) -> Status:
    """Assign free key slots after an operator moved a job in or between key queues; returns the job's new status."""
    if not key_queues:
        return status
    assign_free_key_slots(db, key_queues)
    return Status(db.rows("find_job", {"id": id_})[0][0])
