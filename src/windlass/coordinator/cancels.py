"""The duty that finishes cancels of flows: it cancels jobs that were stored after the cancel, and counts the ends.

See `client/groups/cancelled.py`. A document is dropped a minute after the cancel, if every job of its flow is known;
of a flow whose producer may add more at any time, when nothing has come for a while.
"""

import time
from collections.abc import Sequence

import msgspec

from windlass.client.graphs.members import count_nodes
from windlass.client.graphs.verbs import cancel_late_groups, cancel_late_nodes, payload_of
from windlass.client.groups.cancelled import (
    KIND,
    Cancellation,
    SearchBudget,
    cancel_if_it_holds,
    cancel_late_members,
    cancellation_text,
    is_of_flow,
    read_cancellation,
)
from windlass.client.groups.cancelling import late_behind
from windlass.client.groups.members import ALIVE, ENDED, PAGE, first_live
from windlass.client.groups.opening import store_time
from windlass.client.groups.retrying import group_payload
from windlass.core.events import Emit
from windlass.core.graphs.ids import FLOW_TYPE, MAP_TYPE
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE, before_member, member_id
from windlass.core.groups.rules import stored_within
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.log_events import FlowEnded
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.documents import Document
from windlass.store.records import JobFilter

EVERY_SECONDS = 2.0
SOON_SECONDS = 0.5
"""Seconds until the next turn while few flows are watched: members that come late may start until then."""
FEW_FLOWS = 10
MAX_FLOWS = 100
"""Flows in one turn; the next one continues behind them."""
NEXT_SECONDS = 0.1
BUDGET_SECONDS = 0.2
"""Time for the flows of one turn, so that other duties do not wait long."""
KNOWN: Micros = 60 * SECOND
"""A cancel is kept this long, also if every job of its flow is known: a process that stood still may add another."""
LATE: Micros = 600 * SECOND
"""As long as an enqueue on Redis may stand still before it is committed."""
QUIET_SECONDS = 60.0
"""A coordinator that just began waits this long for enqueues that it finishes for dead producers."""


class Cancels:
    """The duty; a turn is bounded."""

    def __init__(self, store: Store, emit: Emit) -> None:
        self._store, self._emit = store, emit
        self._before: str | None = None
        self._budget = SearchBudget()
        self._has_more = False
        """Whether a turn ended within a flow, since the first of all flows."""
        self._quiet: dict[JobId, float] = {}
        """Since when each flow had no job to cancel."""
        self._known: dict[JobId, int] = {}
        """Members of each group, from the first on, that are known to be stored."""
        self._complete: dict[JobId, int] = {}
        """The versions of documents of flows of which every job is known: nothing is read for them."""

    async def run(self) -> float:
        """Run one turn; returns the seconds until the next."""
        self._has_more = self._has_more and self._before is not None
        page = await self._store.documents.list(KIND, MAX_FLOWS, self._before)
        self._budget.end = time.monotonic() + BUDGET_SECONDS
        watched = await self._finish_some(page) if page else 0
        if page and (len(page) == MAX_FLOWS or self._before != page[-1].id):
            return NEXT_SECONDS
        self._before = None
        if self._has_more:
            return NEXT_SECONDS
        return SOON_SECONDS if 0 < watched <= FEW_FLOWS else EVERY_SECONDS

    async def _finish_some(self, page: Sequence[Document]) -> int:
        """Finish as many as the time allows; returns how many of them had to be read."""
        watched, now = 0, await store_time(self._store)
        jobs = await self._store.operator.get([document.id for document in page])
        for document, job in zip(page, jobs, strict=True):
            self._before = document.id
            cancel = _read(document)
            if cancel is None or self._is_at_rest(document, cancel, now):
                continue
            watched += 1
            await self._finish(document, cancel, job, now)
            if self._budget.over:
                break
        return watched

    def _is_at_rest(self, document: Document, cancel: Cancellation, now: Micros) -> bool:
        return self._complete.get(document.id) == document.version and now - cancel.at < KNOWN

    async def _finish(self, document: Document, cancel: Cancellation, job: Job | None, now: Micros) -> None:
        flow, text, version = document.id, document.data, document.version
        if cancel.uncounted:
            text = cancellation_text(msgspec.structs.replace(cancel, uncounted=False))
            if not await self._store.documents.replace(KIND, flow, text, version):
                return  # the next turn reads what was written meanwhile
            kind, version = "graph" if cancel.type == FLOW_TYPE else "group", version + 1
            self._emit(FlowEnded(flow=flow, kind=kind, queue=cancel.queue, status=Status.CANCELLED))
        if cancel.holds and is_of_flow(cancel, job):
            if await self._cancel_late(flow, cancel):
                self._quiet.pop(flow, None)
                self._has_more |= self._budget.over
                return
            if not await self._is_over(flow, cancel, job, now):
                return
            if now - cancel.at < KNOWN:
                if cancel.type != MAP_TYPE:  # one whose job has ended may still be storing members
                    self._complete[flow] = version
                return
        # Dropped only at this version: the flow may be cancelled again at this moment.
        await self._store.documents.replace(KIND, flow, text, version, keep=1)
        for noted in (self._quiet, self._known, self._complete, self._budget.positions):
            noted.pop(flow, None)

    async def _cancel_late(self, flow: JobId, cancel: Cancellation) -> bool:
        if cancel.type == FLOW_TYPE:
            return await cancel_late_nodes(self._store, flow, cancel.reason, self._budget)
        return await cancel_late_members(self._store, flow, cancel.reason, self._budget)

    async def _is_over(self, flow: JobId, cancel: Cancellation, job: Job | None, now: Micros) -> bool:
        """Whether no further job of the flow can be stored."""
        if job is not None and await self._is_complete(job, cancel.reason):
            return True
        size = group_payload(job).size if job is not None and job.type == GROUP_TYPE else 0
        if now - cancel.at < LATE + stored_within(size):
            return False
        moment = time.monotonic()
        return moment - self._quiet.setdefault(flow, moment) >= QUIET_SECONDS

    async def _is_complete(self, job: Job, reason: str) -> bool:
        """Whether every job of the flow is known, and none is live that may add others."""
        operator = self._store.operator
        if job.type == FLOW_TYPE:
            known = await cancel_late_groups(self._store, job.id, reason, self._budget)
            return known and await count_nodes(operator, job.id, (*ALIVE, *ENDED)) >= payload_of(job).nodes
        payload = group_payload(job)
        if (job.type == GROUP_TYPE and payload.open) or await first_live(operator, job.id) is not None:
            return False
        return job.finished if job.type == MAP_TYPE else await self._has_all(job.id, payload.size, reason)

    async def _has_all(self, group: JobId, size: int, reason: str) -> bool:
        """Whether all members are stored; dropped ones are known as long as their tombstones are kept."""
        operator, known = self._store.operator, self._known.get(group, 0)
        while known < size:
            wanted = JobFilter(parent=group, id_before=member_id(group, size))
            kept = set(await operator.select(wanted, PAGE, before_member(group, known)))
            ahead = [member_id(group, index) for index in range(known, min(size, known + PAGE))]
            missing = [id_ for id_ in ahead if id_ not in kept]
            dropped = zip(missing, await operator.outcomes(missing) if missing else [], strict=True)
            unknown = [id_ for id_, outcome in dropped if outcome is None]
            if unknown or not await self._has_links(group, known, len(ahead), reason):
                break
            known += len(ahead)
            if self._budget.over:
                break
        self._known[group] = known
        return known >= size

    async def _has_links(self, group: JobId, first: int, count: int, reason: str) -> bool:
        """Whether the jobs that these members stand for are stored; late ones are cancelled."""
        wanted = JobFilter(parent=group, type=MEMBER_TYPE, id_before=member_id(group, first + count))
        ids = await self._store.operator.select(wanted, PAGE, before_member(group, first))
        late, known = await late_behind(self._store.operator, group, ids)
        if late:
            await cancel_if_it_holds(self._store, group, late, reason)
        return known and not late


def _read(document: Document) -> Cancellation | None:
    """None: it cannot be read, such as after an edit by hand; the others are finished all the same."""
    try:
        return read_cancellation(document)
    except msgspec.MsgspecError:
        return None
