"""The document of a cancelled flow: jobs of it that are stored after the cancel are cancelled too.

A generator, a member that adds members, and on Redis every large enqueue store jobs after the flow itself. The
document is written before the cancel reads the jobs, and a producer reads it after it has stored some, so one of the
two finds each job. What a producer leaves that dies in between, the coordinator cancels (`coordinator/cancels.py`).
"""

from collections.abc import Callable, Sequence

import msgspec

from windlass.client.groups.cancelling import BATCH, cancel_group
from windlass.client.groups.members import ALIVE, first_live, pages_of
from windlass.client.groups.opening import store_time
from windlass.core.groups.ids import Role, is_of_group, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import DAY, Micros, to_micros
from windlass.store.contract import OperatorStore, Store
from windlass.store.documents import Document
from windlass.store.records import Transition

KIND = "flow_cancel"
KEEP: Micros = 60 * DAY
MAX_AT_ONCE = 500
"""A list of more jobs is stored in portions on Redis."""


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """A cancel of a group or graph."""

    reason: str
    type: str
    queue: str
    created_at: Micros
    """When the flow was enqueued: a later one may have the same name, and so the same id."""
    at: Micros
    """When it was cancelled, by the store's clock."""
    uncounted: bool = False
    """Whether the cancel ended the flow, and no process has counted that end yet."""
    holds: bool = True
    """False: the flow, or a job of it, was retried since, and may run."""


def read_cancellation(document: Document) -> Cancellation:
    """The content of a document of this kind."""
    return msgspec.json.decode(document.data, type=Cancellation)


def cancellation_text(cancellation: Cancellation) -> str:
    """The data of its document."""
    return msgspec.json.encode(cancellation).decode()


def is_of_flow(cancellation: Cancellation, job: Job | None) -> bool:
    """Whether this flow was cancelled, and not an earlier one of the same name; None: its job is not kept."""
    return job is None or to_micros(job.created_at) == cancellation.created_at


async def note_cancel(store: Store, job: Job, reason: str) -> None:
    """Record that a flow is cancelled, before its jobs are; an end that is not counted yet stays recorded."""
    made = Cancellation(
        reason=reason,
        type=job.type,
        queue=job.queue,
        created_at=to_micros(job.created_at),
        at=await store_time(store),
    )
    if await store.documents.add(KIND, job.id, cancellation_text(made), KEEP) is None:
        return

    def again(known: Cancellation) -> Cancellation:
        return msgspec.structs.replace(made, uncounted=known.uncounted and is_of_flow(known, job))

    if not await _change(store, job.id, again):
        await note_cancel(store, job, reason)  # it was dropped in between


async def note_end(store: Store, flow: JobId) -> None:
    """Record that the cancel ended the flow, for the coordinator to count it."""
    await _change(store, flow, lambda known: msgspec.structs.replace(known, uncounted=True))


async def let_retried_run(store: Store, ids: Sequence[JobId]) -> None:
    """Before these jobs are retried: if their flows were cancelled, no more of their jobs are."""
    of_flows = [id_ for id_ in ids if is_of_group(id_)]
    if not of_flows:
        return
    jobs = [job for job in await store.operator.get(of_flows) if job is not None]
    flows = sorted({id_ for job in jobs for id_ in (job.id, job.parent, job.flow) if id_ is not None})
    for document in await store.documents.get(KIND, flows):
        if document is not None and read_cancellation(document).holds:
            await _change(store, document.id, lambda known: msgspec.structs.replace(known, holds=False))


async def retry_jobs(store: Store, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Retry jobs, also of flows that were cancelled."""
    await let_retried_run(store, ids)
    return await store.operator.retry(ids, versions)


async def cancel_that_holds(store: Store, flow: JobId) -> Cancellation | None:
    """The cancel of this flow, if it is cancelled and its jobs are not to run."""
    (document,) = await store.documents.get(KIND, [flow])
    if document is None or not (found := read_cancellation(document)).holds:
        return None
    (job,) = await store.operator.get([flow])
    return found if is_of_flow(found, job) else None


async def cancel_if_late(store: Store, group: JobId) -> bool:
    """After members were stored: whether the group was cancelled meanwhile; then they are cancelled too."""
    found = await cancel_that_holds(store, group)
    if found is not None:
        await cancel_late_members(store.operator, group, found.reason)
    return found is not None


async def cancel_late_members(operator: OperatorStore, group: JobId, reason: str) -> bool:
    """Cancel the members of a cancelled group that are live and were not asked to stop; whether there were any."""
    async for ids in pages_of(operator, group, ALIVE, size=BATCH):
        jobs = await operator.get(ids) if ids else []
        if any(job is not None and not job.finished and not job.cancel_requested for job in jobs):
            await cancel_group(operator, group, reason)
            await wake_always(operator, group)
            return True
    return False


async def wake_always(operator: OperatorStore, group: JobId) -> None:
    """Wake `always` of a cancelled group, if no member is live."""
    if await first_live(operator, group) is None:
        await operator.run_now([watcher_id(group, Role.ALWAYS)])


async def _change(store: Store, flow: JobId, change: Callable[[Cancellation], Cancellation]) -> bool:
    """Compare-and-set, repeated after a concurrent change; False if there is no document."""
    while (found := (await store.documents.get(KIND, [flow]))[0]) is not None:
        text = cancellation_text(change(read_cancellation(found)))
        if await store.documents.replace(KIND, flow, text, found.version, KEEP):
            return True
    return False
