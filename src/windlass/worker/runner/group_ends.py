"""Ends of members wake the jobs that watch their groups; see `client/groups/watch.py`.

Nothing is counted. After the outcomes of a batch are durable, one read per group asks for a live member. If the last
members end at the same moment in different processes, the later read finds none. A runner that is killed before its
read leaves a group that looks by itself soon.
"""

import asyncio
from collections.abc import Sequence

from windlass.client.groups.members import first_live
from windlass.core.events import Emit, StoreFailed
from windlass.core.graphs.ids import WATCHER_TYPES
from windlass.core.groups.ids import GROUP_TYPE, Role, before_member, is_group_id, member_index, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import FINISHED, Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore
from windlass.store.records import Settled
from windlass.worker.handlers.work import Work
from windlass.worker.store_retry import describe_error

PAUSE = 0.01
"""Seconds between two reads: ends that come meanwhile share one. A job that was running when it was woken is woken
again after it: it may have looked before the last member ended.
"""
MAX_WAKES = 500
MAX_KNOWN = 1000


class GroupEnds:
    """Collects groups whose members have ended, and wakes those that are over."""

    def __init__(self, operator: OperatorStore, emit: Emit = lambda event: None) -> None:
        self._operator = operator
        self._emit = emit
        self._touched: dict[JobId, bool] = {}
        """Groups, and whether a member did not complete."""
        self._to_wake: dict[JobId, int] = {}
        """Jobs, and how often that was tried."""
        self._live: dict[JobId, JobId] = {}
        """By group, an id before the live member that the last read found: members before it have ended."""
        self._added = asyncio.Event()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def note(self, batch: Sequence[tuple[Work, Settlement]], answers: Sequence[Settled]) -> None:
        """These outcomes are durable. Jobs without a parent cost one comparison."""
        for work, settlement in batch:
            job = work.claimed
            if job.parent is not None or job.type == GROUP_TYPE:
                self.ended(job.id, job.type, job.parent, settlement.status)

    def ended(self, id_: JobId, type_: str, parent: JobId | None, status: Status) -> None:
        """A job has got this status; it may be a member of a group, or a group itself."""
        if status not in FINISHED:
            return
        if type_ == GROUP_TYPE and is_group_id(id_):
            self._to_wake |= {watcher_id(id_, role): 0 for role in (Role.ON_DEAD, Role.ALWAYS)}
        elif parent is not None and member_index(parent, id_) is not None:
            self._touched[parent] = self._touched.get(parent, False) or status is not Status.COMPLETED
        if self._touched or self._to_wake:
            self.quiet.clear()
            self._added.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._added.wait()
            try:
                await self.check()
            except StoreUnavailable as error:
                # The groups look by themselves later.
                self._touched, self._to_wake = {}, {}
                self._emit(StoreFailed(doing="waking groups", problem=describe_error(error)))
            if not self._touched and not self._to_wake:
                self._added.clear()
                self.quiet.set()
            await asyncio.sleep(PAUSE)

    async def check(self) -> None:
        """Read what has become of the groups, and wake the jobs that have to look."""
        touched, self._touched = self._touched, {}
        for group, lost in touched.items():
            over = not await self._has_live(group)
            if lost or over:
                self._to_wake[group] = 0
            if over:
                self._to_wake[watcher_id(group, Role.ALWAYS)] = 0
        if self._to_wake:
            await self._wake()

    async def _has_live(self, group: JobId) -> bool:
        """A member that is live again, before the one that the last read found, is found when the group looks."""
        found = await first_live(self._operator, group, self._live.pop(group, None))
        if found is not None:
            if len(self._live) >= MAX_KNOWN:
                self._live.pop(next(iter(self._live)))
            self._live[group] = before_member(group, member_index(group, found) or 0)
        return found is not None

    async def _wake(self) -> None:
        """Make them due now. One that is running may have looked too early, so it is woken again afterwards."""
        tries, self._to_wake = self._to_wake, {}
        groups = [
            job.id for job in await self._operator.get(list(tries)) if job is not None and job.type in WATCHER_TYPES
        ]
        for moved in await self._operator.run_now(groups) if groups else []:
            if moved is not None and moved.status is Status.RUNNING and tries[moved.id] < MAX_WAKES:
                self._to_wake.setdefault(moved.id, tries[moved.id] + 1)
