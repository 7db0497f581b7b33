"""timed: new jobs that each have a time of their own, such as reminders, or the ticks of many schedules."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from windlass.core.admission import Birth
from windlass.core.change import IN_LINE
from windlass.core.expiry import expiry
from windlass.core.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.kinds import OWN, own_of
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.line import mark_rated, move_up, seating
from windlass.store.sqlite.portions import portions

_TIMES = ("run_at", "delay", "expires", "expires_at", "schedule", "tick")
"""What these do not have in common, though they are of one task and handed in together."""
like_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*OWN, *_TIMES)))


def insert_timed(
    db: Db, jobs: Sequence[tuple[NewJob, Birth]], common_of: Callable[[NewJob, Birth], Mapping[str, Any]]
) -> None:
    """Store them, all that is alike by one statement. Who is due and has a key gets a slot or goes to its line."""
    due = [(job, born.rank) for job, born in jobs if _needs_slot(job, born)]
    seats = seating(db, due)
    births = {job.id: born for job, born in jobs}
    kinds: dict[Any, list[NewJob]] = defaultdict(list)
    for job, _ in jobs:
        kinds[like_of(job)].append(job)
    for alike in kinds.values():
        common = common_of(alike[0], births[alike[0].id])
        for portion in portions(alike):
            rows = [_row(job, births[job.id], seats.slots.get(job.id), common["now"]) for job in portion]
            db.run("enqueue_timed", {**common, "batch": array(rows)})
    move_up(db, seats.overtaken)
    mark_rated(db, {job.queue for job, _ in due if job.key_rate is not None and job.id in seats.slots})


def _needs_slot(job: NewJob, born: Birth) -> bool:
    return born.status is Status.PENDING and job.concurrency_key is not None


def _row(job: NewJob, born: Birth, slot: int | None, now: Micros) -> tuple[Any, ...]:
    in_line = _needs_slot(job, born) and slot is None
    status, reason = (Status.BLOCKED, IN_LINE) if in_line else (born.status, None)
    when = (born.rank, born.run_at, expiry(job, now))
    return (*own_of(job), slot, str(status), reason, *when, job.schedule, job.tick)
