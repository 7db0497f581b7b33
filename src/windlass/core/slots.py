"""Slots of a concurrency key: who gets one, who keeps it, and who goes to the line."""

from collections.abc import Collection, Iterable

from windlass.core.change import IN_LINE, JobChange, Timing
from windlass.core.job import DEFAULT_KEY_LIMIT
from windlass.core.moments import Micros
from windlass.core.status import Status

Position = tuple[int, Micros, str]
"""Where a job stands in its line: the lowest is next."""


def granted(taken: Collection[int], limits: Iterable[int | None]) -> list[int]:
    """The slots that the first in line get: `limits` are theirs, in the order of the line; the rest goes on waiting.

    Whoever is first brings the limit: it gets a slot if fewer than that are taken, and the next one is first. So
    nobody in a line that was looked at could have got one.
    """
    held, slots, number = set(taken), [], 0
    for limit in limits:
        if len(held) >= (limit or DEFAULT_KEY_LIMIT):
            break
        while number in held:
            number += 1
        held.add(number)
        slots.append(number)
    return slots


def position(urgency: int, strict: bool | None, rank: Micros, id_: str) -> Position:
    """Strict order is that of being due, and ignores priority."""
    return (0 if strict else urgency), rank, id_


def keeps_slot(status: Status, strict: bool | None) -> bool:
    """Whether a job that held a slot has it still, now that an attempt ended or it was parked.

    What is pending goes on at once. In strict order nobody may overtake a job that will run again.
    """
    if status is Status.PENDING:
        return True
    return bool(strict) and status in (Status.FAILED, Status.SCHEDULED, Status.BLOCKED)


def seated(due: Timing, key: str | None, slot: int | None) -> Timing:
    """A job that may run as far as time goes: with a key and no slot it goes to the line, and keeps its rank."""
    if due.status is Status.PENDING and key is not None and slot is None:
        return Timing(Status.BLOCKED, IN_LINE, due.run_at, due.rank)
    return due


def slot_after(slot: int | None, after: Timing, change: JobChange, moves: bool) -> int | None:
    """The slot of a waiting job that a person changed: another queue or a later time lets others go first."""
    put_off = after.status in (Status.SCHEDULED, Status.FAILED)
    return None if moves or (change.is_timed and put_off) else slot
