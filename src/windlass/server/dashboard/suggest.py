"""Suggestions for the search: fields, statuses, and existing queues, types, schedules, tags, tenants and errors."""

from collections.abc import Iterable

import msgspec

from windlass.core.search_text import FIELDS
from windlass.core.status import Status
from windlass.server.api.job_list import JobQuery
from windlass.server.api.jobs import JobList, list_jobs
from windlass.server.api.live_workers import TypeList, list_types
from windlass.server.api.queues import QueueList, list_queues
from windlass.server.api.schedule_records import ScheduleList
from windlass.server.api.schedules import list_schedules
from windlass.server.dashboard.page import Download, Page, Reply, View

MAX_SUGGESTED = 12
NEWEST = 200
"""Jobs whose tags, tenants and errors are suggested."""


async def suggest(view: View) -> Reply:
    """Texts that continue the last word of a search."""
    before, _, word = view.asked("q")[:500].rpartition(" ")
    field, colon, begun = word.partition(":")
    if colon:
        found = [
            f"{field}:{value}" for value in await _values(view, field) if value.lower().startswith(begun.lower())
        ]
    else:
        fields = [f"{name}:" for name in FIELDS] + (["payload."] if view.caller.sees_payloads else [])
        found = [name for name in fields if name.startswith(field)]
    texts = [f"{before} {each}" if before else each for each in found[:MAX_SUGGESTED]]
    return Download("suggestions.json", msgspec.json.encode(texts))


async def _values(view: View, field: str) -> list[str]:
    """Existing values of a field within the caller's limits."""
    match field:
        case "status":
            return [str(status) for status in Status]
        case "queue":
            queues: QueueList = (await view.ask(list_queues)).body
            return [queue.name for queue in queues.queues]
        case "type":
            types: TypeList = (await view.ask(list_types)).body
            used = [job.type for job in (await _newest(view)).jobs]
            return _unique([*(each.type for each in types.types), *used])
        case "schedule":
            schedules: ScheduleList = (await view.ask(list_schedules)).body
            return [each.name for each in schedules.schedules]
        case "tag":
            return _unique(tag for job in (await _newest(view)).jobs for tag in job.tags)
        case "tenant":
            return _unique(job.tenant for job in (await _newest(view)).jobs if job.tenant)
        case "error":
            failed = await _newest(view, Status.DEAD, Status.FAILED)
            return _unique(job.error.type for job in failed.jobs if job.error)
    return []


async def _newest(view: View, *statuses: Status) -> JobList:
    query = JobQuery(status=statuses, sort="failure" if statuses else "", limit=NEWEST)
    return (await view.ask(list_jobs, query=query)).body  # type: ignore[no-any-return]


def _unique(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


PAGES = (Page(path="/suggestions", handler=suggest),)
