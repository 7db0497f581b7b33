"""Ends of members wake the jobs that watch their groups; see `client/groups/watch.py`.

Nothing is counted. After the outcomes of a batch are durable, one read per group asks for a live member. If the last
members end at the same moment in different processes, the later read finds none. If a process is killed before its
read, the group finds the end when it next looks by itself.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from windlass.client.groups.members import first_live
from windlass.core.events import Emit, StoreFailed
from windlass.core.graphs.ids import FLOW_TYPE, FLOW_TYPES, WATCHER_TYPES, is_flow
from windlass.core.groups.ids import GROUP_TYPE, Role, before, is_group_id, is_member_id, is_role_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Job
from windlass.core.log_events import FlowEnded
from windlass.core.status import FINISHED, Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import OperatorStore
from windlass.store.records import Settled

T = TypeVar("T")
PAUSE = 0.01
"""Seconds between two reads: ends in between share one. A job that was running when it was woken is woken again
afterwards: it may have looked before the last member ended.
"""
LOST_PAUSE = 1.0
"""Seconds between two wakes of a group for lost members: with `need`, each wake counts members."""
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
        """`holds` returns whether this process has a live member of a group: then the group is not over.

        The end of that member is noted here too, so nothing is read before it.
        """
        self._operator = operator
        self._emit = emit
        self._holds = holds
        self._lost_pause = lost_pause
        self._touched: dict[JobId, bool] = {}
        """Groups, and whether a member did not complete."""
        self._to_wake: dict[JobId, int] = {}
        """Jobs to wake, and how often each was woken."""
        self._live: dict[JobId, JobId] = {}
        """By group, an id before the live member that the last read found: members before it have ended."""
        self._looked: dict[JobId, int] = {}
        """Groups and graphs that are to look again, and the attempt that said so."""
        self._resting: dict[JobId, bool] = {}
        """Groups that were just woken for a lost member, and whether more were lost since."""
        self._added = asyncio.Event()
        self.quiet = asyncio.Event()
        self.quiet.set()

    @property
    def idle(self) -> bool:
        """Whether nothing is left to read or to wake."""
        return not self._touched and not self._to_wake and not self._looked

    def note(self, ended: Iterable[tuple[Claimed | Job, Status]]) -> None:
        """Note durable outcomes. For a job without a parent and a flow this is two comparisons."""
        for job, status in ended:
            if job.parent is None and job.flow is None:
                continue
            if status in FINISHED:
                self._ended(job, status)
            elif is_flow(job.type, job.id):
                self._looked[job.id] = job.attempt
                self._begin_check()

    def note_settled(self, ended: Iterable[tuple[Claimed, Status]], answers: Iterable[Settled]) -> None:
        """Note outcomes that the store has answered; a stale one is not the end of its job."""
        self.note(each for each, answer in zip(ended, answers, strict=True) if answer is not Settled.STALE)

    def _ended(self, job: Claimed | Job, status: Status) -> None:
        """The job may be a member of a group, a job that a member stands for, or a group itself."""
        is_lost = status is not Status.COMPLETED
        if not is_lost and job.parent in self._touched and job.type not in FLOW_TYPES:
            return  # most members: their group is noted
        if is_flow(job.type, job.id):
            kind = "graph" if job.type == FLOW_TYPE else "group"
            self._emit(FlowEnded(flow=job.id, kind=kind, queue=job.queue, status=status))
        if job.type == GROUP_TYPE and is_group_id(job.id):
            self._to_wake |= {watcher_id(job.id, role): 0 for role in (Role.ON_DEAD, Role.ALWAYS)}
        elif job.parent is not None and is_member_id(job.parent, job.id):
            self._touched[job.parent] = self._touched.get(job.parent, False) or is_lost
        if is_lost and job.flow is not None and _may_hold_up(job.flow, job.id):
            # Its dependents, such as a node or a member that represents it, were cancelled with it, and no process
            # reports their ends.
            self._touched[job.flow] = True
        if self._touched or self._to_wake:
            self._begin_check()

    def _begin_check(self) -> None:
        self.quiet.clear()
        self._added.set()

    def begin_after(self, job: Job) -> None:
        """Search for a live member after this one first: many before it may have ended too."""
        if job.parent is not None and is_member_id(job.parent, job.id):
            self._live[job.parent] = job.id

    async def run(self) -> None:
        """Check noted groups until cancelled."""
        while True:
            await self._added.wait()
            try:
                await self.check()
            except StoreUnavailable as error:
                # The groups run again by themselves later.
                self._touched, self._to_wake, self._looked = {}, {}, {}
                self._emit(StoreFailed(doing="waking groups", problem=str(error), retried=False))
            if self.idle:
                self._added.clear()
                self.quiet.set()
            await asyncio.sleep(PAUSE)

    async def check(self) -> None:
        """Read the noted groups, and wake the jobs that may have to end."""
        if self._looked:
            await self._check_looked()
        touched, self._touched = self._touched, {}
        for group, lost in touched.items():
            over = not self._holds(group) and not await self._has_live(group)
            if over:
                self._to_wake |= {group: 0, watcher_id(group, Role.ALWAYS): 0}
            elif lost:
                self._wake_for_lost(group)
        if self._to_wake:
            await self._wake()

    async def _check_looked(self) -> None:
        """A group that was asked to stop during its look does not look again: the store has cancelled it."""
        looked, self._looked = self._looked, {}
        for job in await self._operator.get(list(looked)):
            # One that was waiting when it was cancelled was not asked to stop: the coordinator counts it.
            if job is not None and job.finished and job.cancel_requested and job.attempt == looked[job.id]:
                self._ended(job, job.status)

    async def _has_live(self, group: JobId) -> bool:
        """Read from the member that was live last time; the group itself finds an earlier one that was retried."""
        found = await first_live(self._operator, group, self._live.pop(group, None))
        if found is not None:
            _remember(self._live, group, before(found))
        return found is not None

    def _wake_for_lost(self, group: JobId) -> None:
        """Wake the group at once for the first lost member, and once after a pause for all later ones."""
        if not self._lost_pause or group not in self._resting:
            self._to_wake[group] = 0
        if self._lost_pause:
            lost_again = group in self._resting
            if not lost_again:
                asyncio.get_running_loop().call_later(self._lost_pause, self._rested, group)
            self._resting[group] = lost_again

    def _rested(self, group: JobId) -> None:
        """End the pause: if more members were lost meanwhile, the group is woken again."""
        if self._resting.pop(group):
            self._touched[group] = True
            self._begin_check()

    async def _wake(self) -> None:
        """Make the jobs due now. One that is running may have counted too early, so it is woken again afterwards."""
        tries, self._to_wake = self._to_wake, {}
        groups = [
            job.id for job in await self._operator.get(list(tries)) if job is not None and job.type in WATCHER_TYPES
        ]
        for moved in await self._operator.run_now(groups) if groups else []:
            if moved is not None and moved.status is Status.RUNNING and tries[moved.id] < MAX_WAKES:
                self._to_wake.setdefault(moved.id, tries[moved.id] + 1)


def _may_hold_up(flow: JobId, id_: JobId) -> bool:
    """Whether a group or graph may wait for a job of this group; callbacks run when it has ended."""
    return flow != id_ and is_group_id(flow) and not is_role_id(flow, id_)


def _remember(known: dict[JobId, T], group: JobId, value: T) -> None:
    """Keep the value of a group, for the latest MAX_KNOWN groups."""
    known.pop(group, None)
    if len(known) >= MAX_KNOWN:
        known.pop(next(iter(known)))
    known[group] = value
