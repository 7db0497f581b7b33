"""Lists of flows, the newest first.

Stores list by id. Ids of flows begin with the time when they were made, except those of named flows: these sort above
all others, are read completely up to a bound, and are merged by the time of their enqueue.
"""

from collections.abc import Sequence

import msgspec

from windlass.client.verbs.by_time import end_of_times
from windlass.core.graphs.ids import FLOW_TYPES
from windlass.core.groups.ids import is_group_id
from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros, to_micros
from windlass.errors import InvalidOption
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Page

MAX_NAMED = 1000
"""Named flows that are merged; those beyond come last, in the order of their ids."""
BATCH = 500
MAX_CALLS = 20
_END, _REST = "end", "rest"


class _Cursor(msgspec.Struct, frozen=True):
    """What earlier pages had."""

    timed: str = ""
    """The id after which the others go on; empty: the newest."""
    at: Micros | None = None
    named: JobId = ""
    """The last named flow, and when it was enqueued."""


async def list_flows(
    operator: OperatorStore, limit: int, cursor: str | None, queues: Sequence[str] = ()
) -> Page[Job]:
    """A page of flows; one with few matches among many jobs may be short."""
    wanted, end = JobFilter(types=FLOW_TYPES, queues=tuple(queues)), end_of_times()
    done = _read(cursor)
    if done.timed == _REST:
        found, rest = await _named(operator, wanted, limit, done.named, end)
        return Page(tuple(found), None if rest is None else _text(_Cursor(_REST, named=rest)))
    named, rest = await _named(operator, wanted, MAX_NAMED, None, end)
    named = sorted([job for job in named if done.at is None or _key(job) < (done.at, done.named)], key=_key)[::-1]
    timed, onward = await _timed(operator, wanted, limit, done.timed or end)
    if onward is not None:  # older ones come after others that are not read yet
        edge = to_micros(timed[-1].created_at) if timed else _time_of(onward)
        page = _merged(timed, [job for job in named if _key(job)[0] >= edge])[:limit]
    else:
        page = _merged(timed, named)[:limit]
    taken = {job.id for job in page}
    left = [job for job in timed if job.id not in taken]
    last_timed = max((index for index, job in enumerate(timed) if job.id in taken), default=None)
    if left:
        onward = done.timed if last_timed is None else timed[last_timed].id
    last = next((job for job in reversed(page) if job.id > end), None)
    at, id_ = (done.at, done.named) if last is None else _key(last)
    if onward is None and sum(job.id not in taken for job in named) == 0:
        return Page(tuple(page), None if rest is None else _text(_Cursor(_REST, named=rest)))
    return Page(tuple(page), _text(_Cursor(_END if onward is None else onward, at, id_)))


async def _timed(
    operator: OperatorStore, wanted: JobFilter, limit: int, before: str
) -> tuple[list[Job], JobId | None]:
    """Flows without a name, and where to go on; None: there are no more."""
    found: list[Job] = []
    cursor: str | None = None if before == _END else before
    for _ in range(MAX_CALLS):
        if cursor is None or len(found) >= limit:
            break
        page = await operator.list(wanted, limit - len(found), cursor)
        found += [job for job in page.items if is_group_id(job.id)]
        cursor = page.next_cursor
    return found, cursor


async def _named(
    operator: OperatorStore, wanted: JobFilter, limit: int, before: str | None, end: JobId
) -> tuple[list[Job], JobId | None]:
    """Named flows in descending order of their ids, and where to go on; None: there are no more."""
    found: list[Job] = []
    cursor = before
    for _ in range(MAX_CALLS):
        page = await operator.list(wanted, min(BATCH, limit - len(found)), cursor)
        found += [job for job in page.items if job.id > end and is_group_id(job.id)]
        cursor = page.next_cursor
        if cursor is None or cursor <= end:
            return found, None
        if len(found) >= limit:
            break
    return found, cursor


def _merged(timed: Sequence[Job], named: Sequence[Job]) -> list[Job]:
    """Both in one order: each keeps its own, whatever the clocks of producers say."""
    found, waiting = list[Job](), list(named)
    for job in timed:
        while waiting and waiting[0].created_at > job.created_at:
            found.append(waiting.pop(0))
        found.append(job)
    return found + waiting


def _key(job: Job) -> tuple[Micros, JobId]:
    return to_micros(job.created_at), job.id


def _time_of(id_: JobId) -> Micros:
    return int(id_[:8] + id_[9:13], 16) * 1000


def _text(cursor: _Cursor) -> str:
    return f"{cursor.timed}_{'' if cursor.at is None else cursor.at}_{cursor.named}"


def _read(text: str | None) -> _Cursor:
    if text is None:
        return _Cursor()
    timed, at, named = (*text.split("_"), "", "")[:3]
    if (at and not at.isdecimal()) or (timed != _REST and bool(at) != bool(named)):
        raise InvalidOption("cursor", "is not one of a list of flows")
    if timed not in ("", _END, _REST):
        check_id(timed)
    return _Cursor(timed, int(at) if at else None, check_id(named) if named else "")
