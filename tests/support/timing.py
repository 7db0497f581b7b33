"""Schedules in one line each, all through the contract."""

from typing import Any

from tests.support.seed import new_job
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.schedules.firing import Fired, firing
from windlass.core.schedules.schedule import Schedule, ScheduleSettings, settings
from windlass.store.contract import Store
from windlass.store.records import JobFilter

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE


def said(job: dict[str, Any] | None = None, **options: Any) -> ScheduleSettings:
    """Settings of a schedule that comes every minute, unless said otherwise."""
    times: dict[str, Any] = {} if {"cron", "every"} & options.keys() else {"every": 60}
    return settings(new_job(**(job or {})), **times, **options)


async def add(store: Store, name: str = "s", job: dict[str, Any] | None = None, **options: Any) -> Schedule:
    """A schedule that an operator made."""
    made = await store.schedules.add(name, said(job, **options))
    assert made is not None, "the name is taken"
    return made


async def find(store: Store, name: str = "s") -> Schedule:
    """A schedule that must be there."""
    (found,) = await store.schedules.get([name])
    assert found is not None
    return found


async def fire(store: Store, limit: int = 100) -> list[Fired]:
    """What a coordinator does in one turn."""
    due = await store.schedules.due(limit)
    return await store.schedules.fire([firing(each, due.now) for each in due.schedules])


async def jobs_of(store: Store, name: str = "s") -> list[Job]:
    """Every job of a schedule, wherever it is in its life, by its tick."""
    found: list[Job] = []
    cursor = None
    while True:
        page = await store.operator.list(JobFilter(), 1000, cursor)
        found += [job for job in page.items if job.schedule == name]
        cursor = page.next_cursor
        if cursor is None:
            return sorted(found, key=lambda job: (job.tick is not None and to_micros(job.tick), job.id))


async def ticks_of(store: Store, name: str = "s") -> list[Micros]:
    """The ticks that have a job."""
    return [to_micros(job.tick) for job in await jobs_of(store, name) if job.tick is not None]


def moment(schedule: Schedule) -> Micros:
    """Its next tick, which it must have."""
    assert schedule.next_at is not None
    return to_micros(schedule.next_at)
