"""Lists by time: stores list by id, and most ids begin with the time when they were made."""

from windlass.core.ids import JobId, first_id_at, moment_of, new_id
from windlass.core.jobs.job import Job
from windlass.core.moments import DAY
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Page

_TOP = "ffffffff-ffff-ffff-ffff-ffffffffffff"
"""The cursor of the first job whose id contains no time."""


async def list_by_time(operator: OperatorStore, wanted: JobFilter, limit: int, cursor: str | None) -> Page[Job]:
    """A page of the newest jobs; jobs whose ids contain no time come last.

    These are jobs of flows with a name, and jobs with an id of the caller. Their ids are spread over all values,
    so nearly all of them sort above the newest job.
    """
    if wanted.parent or wanted.id_before:
        return await operator.list(wanted, limit, cursor)
    end = end_of_times()
    if cursor is not None and cursor > end:
        return await _without_time(operator, wanted, limit, cursor, end)
    page = await operator.list(wanted, limit, cursor or end)
    if page.next_cursor is not None:
        return page
    more = await _without_time(operator, wanted, 1, _TOP, end)
    return Page(page.items, _TOP if more.items or more.next_cursor is not None else None)


async def _without_time(operator: OperatorStore, wanted: JobFilter, limit: int, cursor: str, end: JobId) -> Page[Job]:
    page = await operator.list(wanted, limit, None if cursor == _TOP else cursor)
    found = tuple(job for job in page.items if job.id > end)
    goes_on = page.next_cursor is not None and page.next_cursor > end
    return Page(found, page.next_cursor if goes_on else None)


def end_of_times() -> JobId:
    """An id above all that contain a time, even if the clock of a producer is some hours ahead."""
    return first_id_at((moment_of(new_id()) or 0) + DAY)
