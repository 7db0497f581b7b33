"""The duty that finishes cancels of flows: it cancels jobs that were stored after the cancel, and counts the ends.

See `client/groups/cancelled.py`. A document is dropped when every job of its flow is known; of a flow whose producer
may add more at any time, when nothing has come for a while.
"""

import time

import msgspec

from windlass.client.graphs.members import count_nodes
from windlass.client.graphs.verbs import cancel_late_nodes, payload_of
from windlass.client.groups.cancelled import (
    KIND,
    Cancellation,
    cancel_late_members,
    cancellation_text,
    is_of_flow,
    read_cancellation,
)
from windlass.client.groups.members import ALIVE, ENDED, PAGE, first_live
from windlass.client.groups.opening import store_time
from windlass.client.groups.retrying import group_payload
from windlass.core.events import Emit
from windlass.core.graphs.ids import FLOW_TYPE, MAP_TYPE
from windlass.core.groups.ids import GROUP_TYPE, before_member, member_id
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
LATE: Micros = 600 * SECOND
"""As long as an enqueue on Redis may stand still before it is committed."""
QUIET_SECONDS = 60.0
"""A coordinator that just began waits this long for enqueues that it finishes for dead producers."""


class Cancels:
    """The duty; a turn is bounded."""

    def __init__(self, store: Store, emit: Emit) -> None:
        self._store, self._emit = store, emit
        self._before: str | None = None
        self._quiet: dict[JobId, float] = {}
        """Since when each flow had no job to cancel."""
        self._known: dict[JobId, int] = {}
        """Members of each group, from the first on, that are known to be stored."""

    async def run(self) -> float:
        """Run one turn; returns the seconds until the next."""
        page = await self._store.documents.list(KIND, MAX_FLOWS, self._before)
        self._before = page[-1].id if len(page) == MAX_FLOWS else None
        for document in page:
            await self._finish(document)
        if self._before is not None:
            return NEXT_SECONDS
        return SOON_SECONDS if 0 < len(page) <= FEW_FLOWS else EVERY_SECONDS

    async def _finish(self, document: Document) -> None:
        flow, cancel = document.id, read_cancellation(document)
        text, version = document.data, document.version
        job = (await self._store.operator.get([flow]))[0]
        if cancel.uncounted:
            text = cancellation_text(msgspec.structs.replace(cancel, uncounted=False))
            if not await self._store.documents.replace(KIND, flow, text, version):
                return  # the next turn reads what was written meanwhile
            kind, version = "graph" if cancel.type == FLOW_TYPE else "group", version + 1
            self._emit(FlowEnded(flow=flow, kind=kind, queue=cancel.queue, status=Status.CANCELLED))
        if cancel.holds and is_of_flow(cancel, job):
            if await self._cancel_late(flow, cancel):
                self._quiet.pop(flow, None)
                return
            if not await self._is_over(flow, cancel, job):
                return
        # Dropped only at this version: the flow may be cancelled again at this moment.
        await self._store.documents.replace(KIND, flow, text, version, keep=1)
        self._quiet.pop(flow, None)
        self._known.pop(flow, None)

    async def _cancel_late(self, flow: JobId, cancel: Cancellation) -> bool:
        if cancel.type == FLOW_TYPE:
            return await cancel_late_nodes(self._store, flow, cancel.reason)
        return await cancel_late_members(self._store.operator, flow, cancel.reason)

    async def _is_over(self, flow: JobId, cancel: Cancellation, job: Job | None) -> bool:
        """Whether no further job of the flow can be stored."""
        if job is not None and await self._is_complete(job):
            return True
        size = group_payload(job).size if job is not None and job.type == GROUP_TYPE else 0
        if await store_time(self._store) - cancel.at < LATE + stored_within(size):
            return False
        now = time.monotonic()
        return now - self._quiet.setdefault(flow, now) >= QUIET_SECONDS

    async def _is_complete(self, job: Job) -> bool:
        """Whether every job of the flow is known, and none is live that may add others."""
        operator = self._store.operator
        if job.type == FLOW_TYPE:
            return await count_nodes(operator, job.id, (*ALIVE, *ENDED)) >= payload_of(job).nodes
        if await first_live(operator, job.id) is not None:
            return False
        if job.type == MAP_TYPE:
            return job.finished
        payload = group_payload(job)
        return not payload.open and await self._has_all(job.id, payload.size)

    async def _has_all(self, group: JobId, size: int) -> bool:
        """Whether all members are stored; dropped ones are known as long as their tombstones are kept."""
        operator, known = self._store.operator, self._known.get(group, 0)
        while known < size:
            wanted = JobFilter(parent=group, id_before=member_id(group, size))
            kept = set(await operator.select(wanted, PAGE, before_member(group, known)))
            ahead = [member_id(group, index) for index in range(known, min(size, known + PAGE))]
            if missing := [id_ for id_ in ahead if id_ not in kept]:
                dropped = zip(missing, await operator.outcomes(missing), strict=True)
                unknown = [id_ for id_, outcome in dropped if outcome is None]
                known += ahead.index(unknown[0]) if unknown else len(ahead)
                if unknown:
                    break
            else:
                known += len(ahead)
        self._known[group] = known
        return known >= size
