"""The document of a cancelled flow: jobs of it that are stored after the cancel are cancelled too.

A generator, a member that adds members, and on Redis every large enqueue store jobs after the flow itself. The
document is written before the cancel reads the jobs, and a producer reads it after it has stored some, so one of the
two finds each job. What a producer leaves that dies in between, the coordinator cancels (`coordinator/cancels.py`).
"""

import math
import time
from collections.abc import Callable, Sequence, Set

import msgspec

from windlass.client.groups.cancelling import BATCH, end_group, late_among, late_behind
from windlass.client.groups.members import ALIVE, LOST, first_live, pages_of
from windlass.client.groups.opening import read_opening, store_time
from windlass.core.graphs.ids import FLOW_TYPES
from windlass.core.groups.ids import MEMBER_TYPE, Role, callback_id, is_of_group, watcher_id
from windlass.core.groups.rules import ABANDONED
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, NewJob
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import DAY, SECOND, Micros, to_micros
from windlass.core.status import Status
from windlass.store.contract import OperatorStore, Store
from windlass.store.documents import Document
from windlass.store.records import JobFilter, Transition

KIND = "flow_cancel"
KEEP: Micros = 60 * DAY
LONG: Micros = 60 * SECOND
"""After an add that took longer, also because its process was stopped, the document may be dropped."""
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
    graph: JobId | None = None
    """The graph that was cancelled, if the flow is one of its nodes: a retry of one of them ends both cancels."""


def read_cancellation(document: Document) -> Cancellation:
    """The content of a document of this kind."""
    return msgspec.json.decode(document.data, type=Cancellation)


def cancellation_text(cancellation: Cancellation) -> str:
    """The data of its document."""
    return msgspec.json.encode(cancellation).decode()


def is_of_flow(cancellation: Cancellation, job: Job | None) -> bool:
    """Whether this flow was cancelled, and not an earlier one of the same name; None: its job is not kept.

    A flow that completed all the same keeps its jobs.
    """
    if job is None:
        return True
    return to_micros(job.created_at) == cancellation.created_at and job.status is not Status.COMPLETED


async def note_cancel(store: Store, job: Job, reason: str, graph: JobId | None = None) -> None:
    """Record that a flow is cancelled, before its jobs are; an end that is not counted yet stays recorded."""
    made = Cancellation(
        reason=reason,
        type=job.type,
        queue=job.queue,
        created_at=to_micros(job.created_at),
        at=await store_time(store),
        graph=graph,
    )
    if await store.documents.add(KIND, job.id, cancellation_text(made), KEEP) is None:
        return

    def again(known: Cancellation) -> Cancellation:
        uncounted = known.uncounted and is_of_flow(known, job)
        return msgspec.structs.replace(made, uncounted=uncounted, graph=graph or known.graph)

    if not await _change(store, job.id, again):
        await note_cancel(store, job, reason, graph)  # it was dropped in between


async def note_end(store: Store, flow: JobId) -> None:
    """Record that a cancel ended the flow, for the coordinator to count it; a map is no flow of its own."""

    def ended(known: Cancellation) -> Cancellation:
        return msgspec.structs.replace(known, uncounted=known.uncounted or known.type in FLOW_TYPES)

    await _change(store, flow, ended)


async def end_noted_group(store: Store, group: JobId, reason: str) -> None:
    """Cancel the own job of a group whose cancel is recorded, and its callbacks except `always`.

    The end is recorded before the members are cancelled, since that takes a minute for very many.
    """
    if await end_group(store.operator, group, reason):
        await note_end(store, group)


async def let_retried_run(store: Store, jobs: Sequence[Job]) -> None:
    """Before these jobs are retried: if their flows were cancelled, no more of their jobs are."""
    of_flows = [job for job in jobs if is_of_group(job.id)]
    flows = sorted({id_ for job in of_flows for id_ in (job.id, job.parent, job.flow) if id_ is not None})
    if not flows:
        return
    found = [document for document in await store.documents.get(KIND, flows) if document is not None]
    graphs = {graph for document in found if (graph := read_cancellation(document).graph) is not None}
    above = await store.documents.get(KIND, sorted(graphs.difference(flows))) if graphs else []
    for document in (*above, *found):
        if document is not None and read_cancellation(document).holds:
            await _change(store, document.id, lambda known: msgspec.structs.replace(known, holds=False))


async def retry_jobs(store: Store, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Retry jobs, also of flows that were cancelled; a live one is not retried, so its flow stays cancelled."""
    of_flows = [id_ for id_ in ids if is_of_group(id_)]
    jobs = await store.operator.get(of_flows) if of_flows else []
    await let_retried_run(store, [job for job in jobs if job is not None and job.finished])
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
        await cancel_late_members(store, group, found.reason)
        await _cancel_late_links(store, group, found.reason)
    return found is not None


async def cancel_if_left(store: Store, group: JobId, size: int, jobs: Sequence[NewJob]) -> bool:
    """After an add that took long: whether the group was cancelled or abandoned without these members.

    Then they are cancelled. The document of the cancel may be dropped already.
    """
    opening = await read_opening(store, group)
    (job,) = await store.operator.get([group])
    if opening is None or not opening.abandoned or opening.size is None or size <= opening.size:
        return False
    if job is None or job.status not in LOST:
        return False
    for start in range(0, len(jobs), BATCH):
        await store.operator.cancel([each.id for each in jobs[start : start + BATCH]], job.reason or ABANDONED)
    return True


class SearchBudget:
    """Until when one search for late jobs may take, and where the next one continues: other duties run in between.

    To list live members from the first one on, Redis walks over all that have ended.
    """

    def __init__(self) -> None:
        self.end = math.inf
        self.positions: dict[JobId, JobId] = {}

    @property
    def over(self) -> bool:
        """Whether it is used up."""
        return time.monotonic() > self.end


async def cancel_late_members(store: Store, group: JobId, reason: str, budget: SearchBudget | None = None) -> bool:
    """Cancel the jobs of a cancelled group that are live and were not asked to stop; whether there were any.

    When the budget is used up, the others are left to the next search.
    """
    operator, budget = store.operator, budget or SearchBudget()
    found = await _cancel_late_watchers(store, group, reason)
    if found is None:
        return False
    after = budget.positions.pop(group, None)
    async for ids in pages_of(operator, group, ALIVE, after, BATCH):
        if not (late := await late_among(operator, ids)):
            continue
        behind, _ = await late_behind(operator, group, [job.id for job in late if job.type == MEMBER_TYPE])
        if await cancel_if_it_holds(store, group, [*behind, *late], reason) is None:
            return found
        found = True
        if budget.over:
            budget.positions[group] = ids[-1]
            return True
    if found or after is not None:
        await wake_always(operator, group)
    return found or after is not None


async def _cancel_late_watchers(store: Store, group: JobId, reason: str) -> bool | None:
    """The same for the group's own job and callbacks except `always`, as `end_group`; None if it was retried."""
    late = await late_among(store.operator, [watcher_id(group, Role.ON_DEAD), callback_id(group, Role.THEN), group])
    for some in ([job for job in late if job.id != group], [job for job in late if job.id == group]):
        ended = await cancel_if_it_holds(store, group, some, reason) if some else frozenset[JobId]()
        if ended is None:
            return None
        if group in ended:
            await note_end(store, group)
    return bool(late)


async def cancel_if_it_holds(store: Store, flow: JobId, late: Sequence[Job], reason: str) -> Set[JobId] | None:
    """Cancel these late jobs, and return those that ended here; None if the flow was retried since they were read.

    A retry ends the cancel before it revives jobs, so it revived none of these before the cancel is read again. One
    that was cancelled and revived since then has another version.
    """
    if await cancel_that_holds(store, flow) is None:
        return None
    moved = await store.operator.cancel([job.id for job in late], reason, {job.id: job.version for job in late})
    return {each.id for each in moved if each is not None and each.done and each.status is Status.CANCELLED}


async def _cancel_late_links(store: Store, group: JobId, reason: str) -> None:
    """Cancel the jobs that cancelled members stand for, if they were stored after these."""
    after: JobId | None = None
    wanted = JobFilter(parent=group, status=(Status.CANCELLED,), type=MEMBER_TYPE)
    while ids := await store.operator.select(wanted, BATCH, after):
        after = ids[-1]
        late, _ = await late_behind(store.operator, group, ids)
        if late and await cancel_if_it_holds(store, group, late, reason) is None:
            return


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
