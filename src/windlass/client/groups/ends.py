"""Ends of members wake the jobs that watch their groups; see `client/groups/watch.py`.

Nothing is counted. After the outcomes of a batch are durable, one read per group asks for a live member. If the last
members end at the same moment in different processes, the later read finds none. A process that is killed before its
read leaves a group that looks by itself soon.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from windlass.client.groups.members import first_live
from windlass.core.events import Emit, StoreFailed
from windlass.core.graphs.ids import WATCHER_TYPES
from windlass.core.groups.ids import GROUP_TYPE, Role, before, group_of, is_group_id, is_member_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed
from windlass.core.status import FINISHED, Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore

T = TypeVar("T")
PAUSE = 0.01
"""Seconds between two reads: ends that come meanwhile share one. A job that was running when it was woken is woken
again after it: it may have looked before the last member ended.
"""
LOST_PAUSE = 1.0
"""Seconds between two wakes of a group for lost members: it may need fewer than all, and counts at each of them."""
MAX_WAKES = 500
MAX_KNOWN = 1000


class GroupEnds:
    """Collects groups whose members have ended, and wakes those that are over."""

    def __init__(
        self,
        operator: OperatorStore,
        emit: Emit = lambda event: None,
        *,
        lost_pause: float = LOST_PAUSE,
        holds: Callable[[JobId], bool] = lambda group: False,
    ) -> None:
        """`holds` tells whether this process has a live member of a group: then the group is not over.

        The end of that member is noted here too, so nothing is read until then.
        """
        self._operator = operator
        self._emit = emit
        self._holds = holds
        self._lost_pause = lost_pause
        self._touched: dict[JobId, bool] = {}
        """Groups, and whether a member did not complete."""
        self._to_wake: dict[JobId, int] = {}
        """Jobs, and how often that was tried."""
        self._live: dict[JobId, JobId] = {}
        """By group, an id before the live member that the last read found: members before it have ended."""
        self._resting: dict[JobId, bool] = {}
        """Groups that were just woken for a lost member, and whether there were more since."""
        self._added = asyncio.Event()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def note(self, ended: Iterable[tuple[Claimed, Status]]) -> None:
        """These outcomes are durable. Jobs of no flow, and without a parent, cost two comparisons."""
        for job, status in ended:
            if (job.parent is not None or job.flow is not None) and status in FINISHED:
                self._ended(job, status)

    def _ended(self, job: Claimed, status: Status) -> None:
        """The job may be a member of a group, a job that a member stands for, or a group itself."""
        is_lost = status is not Status.COMPLETED
        if job.type == GROUP_TYPE and is_group_id(job.id):
            self._to_wake |= {watcher_id(job.id, role): 0 for role in (Role.ON_DEAD, Role.ALWAYS)}
        elif job.parent is not None and is_member_id(job.parent, job.id):
            self._touched[job.parent] = self._touched.get(job.parent, False) or is_lost
        elif is_lost and (group := group_of(job.id, job.parent, job.flow)) is not None:
            # The member that stands for it was cancelled with it, which no process reports.
            self._touched[group] = True
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
                self._emit(StoreFailed(doing="waking groups", problem=str(error)))
            if not self._touched and not self._to_wake:
                self._added.clear()
                self.quiet.set()
            await asyncio.sleep(PAUSE)

    async def check(self) -> None:
        """Read what has become of the groups, and wake the jobs that have to look."""
        touched, self._touched = self._touched, {}
        for group, lost in touched.items():
            over = not self._holds(group) and not await self._has_live(group)
            if over:
                self._to_wake |= {group: 0, watcher_id(group, Role.ALWAYS): 0}
            elif lost:
                self._wake_for_lost(group)
        if self._to_wake:
            await self._wake()

    async def _has_live(self, group: JobId) -> bool:
        """A member that is live again, before the one that the last read found, is found when the group looks."""
        found = await first_live(self._operator, group, self._live.pop(group, None))
        if found is not None:
            _remember(self._live, group, before(found))
        return found is not None

    def _wake_for_lost(self, group: JobId) -> None:
        """At once for the first lost member, for the following ones together, after a pause."""
        if not self._lost_pause or group not in self._resting:
            self._to_wake[group] = 0
        if self._lost_pause:
            lost_again = group in self._resting
            if not lost_again:
                asyncio.get_running_loop().call_later(self._lost_pause, self._rested, group)
            self._resting[group] = lost_again

    def _rested(self, group: JobId) -> None:
        """The pause is over: if more members were lost meanwhile, the group is woken again."""
        if self._resting.pop(group):
            self._touched[group] = True
            self.quiet.clear()
            self._added.set()

    async def _wake(self) -> None:
        """Make them due now. One that is running may have looked too early, so it is woken again afterwards."""
        tries, self._to_wake = self._to_wake, {}
        groups = [
            job.id for job in await self._operator.get(list(tries)) if job is not None and job.type in WATCHER_TYPES
        ]
        for moved in await self._operator.run_now(groups) if groups else []:
            if moved is not None and moved.status is Status.RUNNING and tries[moved.id] < MAX_WAKES:
                self._to_wake.setdefault(moved.id, tries[moved.id] + 1)


def _remember(known: dict[JobId, T], group: JobId, value: T) -> None:
    """Of the latest groups only."""
    known.pop(group, None)
    if len(known) >= MAX_KNOWN:
        known.pop(next(iter(known)))
    known[group] = value
