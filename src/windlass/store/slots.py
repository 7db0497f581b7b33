"""Newcomers at concurrency keys: who gets a slot at once, and who goes to the line."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.slots import Position, granted, position

Line = tuple[str, str]
"""A queue and a concurrency key in it: where jobs stand in line for a slot."""


class Use(msgspec.Struct, frozen=True):
    """Who is at a key already."""

    taken: tuple[int, ...] = ()
    head: Position | None = None
    """Where the first in line stands."""


class Seating(msgspec.Struct, frozen=True):
    """Where newcomers go: those that are not named here go to their lines."""

    slots: dict[JobId, int]
    overtaken: list[Line]
    """Lines in which a newcomer stands first, and may bring a higher limit than those had that wait."""


NOBODY = Seating({}, [])


def lines_of(jobs: Iterable[NewJob]) -> set[Line]:
    """The lines that these jobs would stand in."""
    return {(job.queue, job.concurrency_key) for job in jobs if job.concurrency_key is not None}


def seat(due: Iterable[tuple[NewJob, Micros]], uses: Mapping[Line, Use]) -> Seating:
    """Due jobs, with their ranks, come to their keys all at once: the order of the line decides, not they."""
    comers: dict[Line, list[tuple[Position, int | None]]] = defaultdict(list)
    for job, rank in due:
        if job.concurrency_key is not None:
            place = position(-job.priority, job.key_strict, rank, job.id)
            comers[job.queue, job.concurrency_key].append((place, job.key_limit))
    slots: dict[JobId, int] = {}
    overtaken = []
    for line, waiting in comers.items():
        use = uses.get(line, Use())
        waiting.sort()
        if use.head is None:
            given = granted(use.taken, (limit for _, limit in waiting))
            slots.update(zip((id_ for (_, _, id_), _ in waiting), given, strict=False))
        elif waiting[0][0] < use.head:
            overtaken.append(line)
    return Seating(slots, overtaken)
