"""Wakes groups for ends that no runner wrote: of jobs that were cancelled, expired, or died with their runner."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from windlass.client.groups.ends import PAUSE, GroupEnds
from windlass.core.events import Emit, silent
from windlass.core.groups.ids import family
from windlass.core.ids import JobId
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.status import FINISHED, Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore
from windlass.store.drive import running_loop
from windlass.store.records import Transition

MAX_TRIES = 20
"""Max wakes of a group that is running and may have counted too early; later it runs by itself."""
MAX_READ = 500
"""Jobs that are read for their groups, one of the members of each group."""


async def cancel_jobs(
    operator: OperatorStore, ids: Sequence[JobId], reason: str, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Cancel jobs, and wake the groups of those that ended."""
    moved = await operator.cancel(ids, reason, versions)
    await wake_groups(operator, [each.id for each in moved if each is not None and each.status is Status.CANCELLED])
    return moved


async def wake_groups(operator: OperatorStore, ended: Sequence[JobId], emit: Emit = silent) -> None:
    """Wake the groups of ended jobs, and emit the ends of flows. Only jobs with an id of a group are read.

    If the store fails meanwhile, or a job is not kept, the group finds the end later by itself.
    """
    one_each = {of: id_ for id_ in ended if (of := family(id_)) is not None}
    if not one_each:
        return
    ends = GroupEnds(operator, emit, lost_pause=0)
    with contextlib.suppress(StoreUnavailable):
        for job in await operator.get(list(one_each.values())[:MAX_READ]):
            if job is not None and job.status in FINISHED:
                ends.note([(job, job.status)])
                ends.begin_after(job)
        for _ in range(MAX_TRIES):
            await ends.check()
            if ends.idle:
                return
            await _pause()


async def _pause() -> None:
    if running_loop() is None:
        time.sleep(PAUSE)  # noqa: ASYNC251 - without a loop the caller's thread blocks
    else:
        await asyncio.sleep(PAUSE)
