"""The filters of verbs on many jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypedDict, Unpack

import msgspec

from windlass.client.tasks.task import Task
from windlass.client.verbs.by_time import list_by_time
from windlass.core.ids import JobId, JobRef, check_id
from windlass.core.jobs.job import Job
from windlass.core.names import check_name
from windlass.core.status import Status
from windlass.core.suggest import STATUSES_ELSEWHERE, unknown_option
from windlass.errors import InvalidOption
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Page, Transition

PAGE = 500
MAX_CALLS_PER_PAGE = 20
"""Max calls of the store for the jobs of one page."""
MAX_PAGE = 1000

TaskType = str | Task[Any, Any, Any]
"""A type of jobs, or the task that has it."""


class JobFilters(TypedDict, total=False):
    """What `app.jobs.list`, `iter`, `count` and the verbs on many jobs take: every given filter must match."""

    status: str | Iterable[str]
    type: TaskType | None
    queue: str | None
    tenant: str | None
    tag: str | None
    parent: JobRef | None
    schedule: str | None


def type_name(given: TaskType) -> str:
    """The name of a type, or that of a task's type."""
    return given.type if isinstance(given, Task) else check_name(given, "type")


def job_filter(**wanted: Unpack[JobFilters]) -> JobFilter:
    """The filter for a store; raises InvalidInput."""
    unknown = [name for name in wanted if name not in JobFilters.__annotations__]
    if unknown:
        raise unknown_option(unknown[0], JobFilters.__annotations__, "a filter")
    type_, parent = wanted.get("type"), wanted.get("parent")
    return JobFilter(
        status=_statuses(wanted.get("status", ())),
        type=None if type_ is None else type_name(type_),
        queue=_name(wanted.get("queue"), "queue"),
        tenant=_name(wanted.get("tenant"), "tenant"),
        tag=_name(wanted.get("tag"), "tag"),
        parent=None if parent is None else check_id(parent, "parent"),
        schedule=_name(wanted.get("schedule"), "schedule"),
    )


def describe_filter(wanted: JobFilter) -> str:
    """A filter in one line, such as `type=mail status=dead`."""
    given = msgspec.structs.asdict(wanted)
    said = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
    return " ".join(f"{name}={value}" for name, value in said.items()) or "all jobs"


def _statuses(given: str | Iterable[str]) -> tuple[Status, ...]:
    statuses = (given,) if isinstance(given, str) else tuple(given)
    for each in statuses:
        if each not in set(Status):
            ours = STATUSES_ELSEWHERE.get(each)
            guess = f"; did you mean {ours}?" if ours else ""
            raise InvalidOption("status", f"{each!r} is not one of {', '.join(Status)}{guess}")
    return tuple(map(Status, statuses))


def _name(given: str | None, field: str) -> str | None:
    return None if given is None else check_name(given, field)


async def list_page(operator: OperatorStore, wanted: JobFilter, limit: int, cursor: str | None) -> Page[Job]:
    """A page: one call of the store reads 10,000 jobs in search of matches, and is repeated until it is full."""
    found: list[Job] = []
    for _ in range(MAX_CALLS_PER_PAGE):
        page = await list_by_time(operator, wanted, limit - len(found), cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit:
            break
    return Page(tuple(found), cursor)


async def count(operator: OperatorStore, wanted: JobFilter, most: int | None = None) -> int:
    """How many jobs match: from the counts by queue and status if these are enough, else from their ids.

    Counting stops after more than `most` ids.
    """
    if wanted == JobFilter(status=wanted.status, queue=wanted.queue):
        counts = await operator.counts()
        chosen = counts.queues if wanted.queue is None else {wanted.queue: counts.queues.get(wanted.queue, {})}
        statuses = wanted.status or tuple(Status)
        return sum(jobs.get(status, 0) for jobs in chosen.values() for status in set(statuses))
    found = 0
    async for ids in _pages(operator, wanted):
        found += len(ids)
        if most is not None and found > most:
            break
    return found


async def each_page(
    operator: OperatorStore,
    wanted: JobFilter,
    verb: Callable[[OperatorStore, Sequence[JobId]], Awaitable[Sequence[Transition | None]]],
) -> int:
    """Apply a verb to every matching job, oldest first; returns how many it changed.

    Each page is atomic, the whole is not; no job is visited twice.
    """
    done = 0
    async for ids in _pages(operator, wanted):
        done += sum(1 for each in await verb(operator, ids) if each is not None and each.done)
    return done


async def _pages(operator: OperatorStore, wanted: JobFilter) -> AsyncIterator[Sequence[JobId]]:
    after = None
    while ids := await operator.select(wanted, PAGE, after):
        yield ids
        after = ids[-1]


def check_every(wanted: JobFilter, every: bool) -> None:
    """Refuse a verb on all jobs of the store unless it was asked for."""
    if wanted == JobFilter() and every is not True:
        raise InvalidOption("all", "no filter is given; for every job of the store pass all=True")


def check_limit(limit: int) -> None:
    """Refuse a page that is too large."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidOption("limit", f"must be a whole number from 1 to {MAX_PAGE}, not {limit!r}")
