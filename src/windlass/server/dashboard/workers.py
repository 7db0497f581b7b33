"""Live workers: slots in use, running jobs and their start, memory."""

from collections.abc import Sequence

import msgspec

from windlass.core.status import Status
from windlass.server.api.job_list import JobQuery
from windlass.server.api.jobs import JobRecord, list_jobs
from windlass.server.api.live_workers import list_workers
from windlass.server.dashboard.page import Page, Reply, Shown, View, paged
from windlass.store.records import WorkerInfo

MAX_RUNNING = 300
"""Running jobs that are read for the page."""
MAX_NAMED = 5
"""Running jobs that are shown for each worker."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, and the jobs that it runs, the longest first."""

    info: WorkerInfo
    jobs: Sequence[JobRecord]
    more: int


async def show_workers(view: View) -> Reply:
    """The live workers."""
    found: list[WorkerInfo] = (await view.ask(list_workers)).body.workers
    ordered = sorted(found, key=lambda each: (each.host, each.id))
    shown, pages = paged(view, "/workers", ordered)
    running = await _running(view) if found else []
    context = {
        "workers": [_row(each, running) for each in shown],
        "count": len(found),
        "slots": sum(each.slots for each in found),
        "busy": sum(each.busy for each in found),
        "memory": sum(each.memory or 0 for each in found) or None,
        **pages,
    }
    return Shown("workers.html", "Workers", context)


async def _running(view: View) -> list[JobRecord]:
    query = JobQuery(status=(Status.RUNNING,), limit=MAX_RUNNING)
    return (await view.ask(list_jobs, query=query)).body.jobs  # type: ignore[no-any-return]


def _row(info: WorkerInfo, running: Sequence[JobRecord]) -> WorkerRow:
    # The id of a runner is that of its worker and a number.
    own = [each for each in running if (each.worker or "").rpartition("-")[0] == info.id]
    own.sort(key=lambda each: each.started_at or each.claimed_at or each.updated_at)
    return WorkerRow(info=info, jobs=own[:MAX_NAMED], more=max(0, len(own) - MAX_NAMED))


PAGES = (Page(path="/workers", handler=show_workers),)
