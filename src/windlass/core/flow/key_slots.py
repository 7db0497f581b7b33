"""Slots of a concurrency key: which jobs get one, keep one, or wait for one."""

from collections.abc import Collection, Iterable

from windlass.core.jobs.change import WAITING_FOR_KEY, JobChange, Timing
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT
from windlass.core.moments import Micros
from windlass.core.status import Status

KeyPosition = tuple[int, Micros, str]
"""The order among jobs that wait for a key: the lowest is next."""


def assign_key_slots(taken: Collection[int], limits: Iterable[int | None]) -> list[int]:
    """The key slots for the first of the waiting jobs, whose limits are given in order; the rest keep waiting.

    Each job has its own limit and gets a key slot if fewer key slots than that are taken. The first job without a
    key slot ends the assignment.
    """
    held, key_slots, number = set(taken), [], 0
    for limit in limits:
        if len(held) >= (limit or DEFAULT_KEY_LIMIT):
            break
        while number in held:
            number += 1
        held.add(number)
        key_slots.append(number)
    return key_slots


def key_position(sort_priority: int, strict: bool | None, rank: Micros, id_: str) -> KeyPosition:
    """The position of a job that waits for its key; strict order is by due time and ignores priority."""
    return (0 if strict else sort_priority), rank, id_


def keeps_key_slot(status: Status, strict: bool | None) -> bool:
    """Whether a job keeps its key slot after an attempt ended or it was parked.

    A pending job keeps it. In strict order a job that will run again keeps it too, so that none overtakes it.
    """
    if status is Status.PENDING:
        return True
    return bool(strict) and status in (Status.FAILED, Status.SCHEDULED, Status.BLOCKED)


def or_waiting_for_key(due: Timing, key: str | None, key_slot: int | None) -> Timing:
    """A due job with a key and no key slot becomes blocked, and keeps its rank."""
    if due.status is Status.PENDING and key is not None and key_slot is None:
        return Timing(Status.BLOCKED, WAITING_FOR_KEY, due.run_at, due.rank)
    return due


def key_slot_after(key_slot: int | None, after: Timing, change: JobChange, moves: bool) -> int | None:
    """The key slot of a waiting job after a change: another queue or a later time frees it."""
    is_later = after.status in (Status.SCHEDULED, Status.FAILED)
    return None if moves or (change.is_timed and is_later) else key_slot
