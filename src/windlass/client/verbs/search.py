"""Searches by fields that no index covers: bounded in jobs and in time, newest first."""

from collections.abc import Callable

import msgspec

from windlass.client.verbs.by_time import list_by_time
from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND
from windlass.core.search import SearchTerms, matches, needles
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.clock import since_boot
from windlass.store.contract import OperatorStore
from windlass.store.records import NEWEST, FailureKey, JobFilter
from windlass.store.rows import failure_key

MAX_CALLS = 10
"""Calls of the store, each of which reads up to 10,000 jobs."""
MAX_SEARCHED = 100_000
SEARCH_SECONDS = 0.8
FAILURES = frozenset({Status.FAILED, Status.DEAD})
FAILURES_PAGE = 500
UNFILTERED_PAGE = 500
"""Jobs that are read at once where the store may not look into payloads."""
Sees = Callable[[Job], bool]


class Found(msgspec.Struct):
    """Jobs that match, and where the search goes on; None: there are no more."""

    jobs: list[Job]
    next_cursor: str | None


def is_by_failure(wanted: JobFilter) -> bool:
    """Whether jobs can be listed by their latest failure, because only failures are wanted."""
    return bool(wanted.status) and FAILURES.issuperset(wanted.status) and wanted.parent is None


async def search(
    operator: OperatorStore,
    wanted: JobFilter,
    terms: SearchTerms,
    limit: int,
    cursor: str | None,
    sees: Sees = lambda _: True,
    *,
    by_failure: bool = False,
    in_payloads: bool = True,
) -> Found:
    """A page: the newest jobs, or the latest failures, that match and are visible.

    Without `in_payloads` the store does not filter by payloads: the end of the search would reveal what hidden
    fields contain.
    """
    ends = since_boot() + round(SEARCH_SECONDS * SECOND)
    if by_failure:
        return await _failures(operator, wanted, terms, limit, _failure_key(cursor), sees, ends)
    given = terms if in_payloads else msgspec.structs.replace(terms, payload=())
    wanted = msgspec.structs.replace(wanted, contains=needles(given))
    found: list[Job] = []
    for _ in range(MAX_CALLS):
        size = limit - len(found) if given == terms else max(limit, UNFILTERED_PAGE)
        page = await list_by_time(operator, wanted, size, cursor)
        found += [job for job in page.items if matches(terms, job) and sees(job)]
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit or since_boot() > ends:
            break
    return Found(found, cursor) if len(found) <= limit else Found(found[:limit], found[limit - 1].id)


async def _failures(
    operator: OperatorStore,
    wanted: JobFilter,
    terms: SearchTerms,
    limit: int,
    before: FailureKey,
    sees: Sees,
    ends: int,
) -> Found:
    found: list[Job] = []
    read = 0
    while read < MAX_SEARCHED and since_boot() < ends:
        page = await operator.failures(FAILURES_PAGE, before)
        if not page:
            return Found(found, None)
        read += len(page)
        for job in page:
            before = failure_key(job)
            if _is_chosen(job, wanted) and matches(terms, job) and sees(job):
                found.append(job)
                if len(found) == limit:
                    return Found(found, _cursor(before))
    return Found(found, _cursor(before))


def _is_chosen(job: Job, wanted: JobFilter) -> bool:
    """Whether a job matches what the store's filter would test."""
    return (
        job.status in wanted.status
        and wanted.type in (None, job.type)
        and wanted.queue in (None, job.queue)
        and wanted.tenant in (None, job.tenant)
        and wanted.schedule in (None, job.schedule)
        and (wanted.tag is None or wanted.tag in job.tags)
    )


def _cursor(key: FailureKey) -> str:
    return f"{key[0]}.{key[1]}"


def _failure_key(cursor: str | None) -> FailureKey:
    if not cursor:
        return NEWEST
    moment, _, id_ = cursor.partition(".")
    if not moment.isdecimal() or len(moment) > 17:
        raise InvalidOption("cursor", "is no cursor of this list")
    return int(moment), JobId(check_id(id_, "cursor"))
