"""The members of a group, read from the store: which have ended, which is live, and which is lost."""

from windlass.core.groups.ids import before_member, member_id, member_index
from windlass.core.groups.rules import MemberState, member_ended_reason, member_state
from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, LIVE, Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

PAGE = 1000
MAX_FOREIGN = 10
"""Children of a group that are not its members, and are skipped."""
LOST = (Status.CANCELLED, Status.DEAD)
ALIVE = tuple(sorted(LIVE))
ENDED = tuple(sorted(FINISHED))


async def first_live(operator: OperatorStore, group: JobId, after: JobId | None = None) -> JobId | None:
    """The live member with the lowest index, after a given id; None: all have ended."""
    return await _first(operator, group, ALIVE, after)


async def _first(
    operator: OperatorStore, group: JobId, status: tuple[Status, ...], after: JobId | None
) -> JobId | None:
    """Read one by one: a store may have to look at every child to find a second one.

    Ids of members sort before those of callbacks, which are children of the group too.
    """
    start = max(after or "", before_member(group, 0))
    for _ in range(MAX_FOREIGN):
        found = await operator.select(JobFilter(parent=group, status=status), 1, start)
        if not found or member_index(group, found[0]) is not None:
            return found[0] if found else None
        start = found[0]
    return None


class Walk:
    """Counts members from the first on, as far as all of them have ended."""

    def __init__(self, operator: OperatorStore, group: JobId, size: int, *, past_lost: bool, age: Micros) -> None:
        """With `past_lost` it goes on behind a member that did not complete; `age` is that of the group."""
        self._operator, self._group, self._size, self._age = operator, group, size, age
        self._past_lost = past_lost
        self._counted = ENDED if past_lost else (Status.COMPLETED,)
        self.lost: str | None = None
        """Why the group is lost, if a member is."""

    async def run(self, done: int) -> int:
        """How many members have ended, of which `done` are known."""
        while done < self._size and self.lost is None:
            before, done = done, await self._ended_from(done)
            if done - before < PAGE and done < self._size:
                step = await self._step(done)
                if step == 0:
                    break
                done += step
        return done

    async def _ended_from(self, done: int) -> int:
        wanted = JobFilter(parent=self._group, status=self._counted)
        found = set(await self._operator.select(wanted, PAGE, before_member(self._group, done)))
        while done < self._size and member_id(self._group, done) in found:
            done += 1
        return done

    async def _step(self, index: int) -> int:
        """The member at which the walk stopped: 0 if it is live or lost, else the members that were dropped."""
        id_ = member_id(self._group, index)
        job = (await self._operator.get([id_]))[0]
        if job is not None:
            return await self._judge(index, member_state(job.status, None, self._age), job.status)
        outcomes = await self._operator.outcomes([member_id(self._group, i) for i in self._next(index)])
        steps = 0
        for outcome in outcomes:
            state = member_state(None, outcome, self._age)
            if (outcome is None and steps) or not await self._judge(index + steps, state, None):
                break
            steps += 1
        return steps

    def _next(self, index: int) -> range:
        return range(index, min(index + PAGE, self._size))

    async def _judge(self, index: int, state: MemberState, status: Status | None) -> int:
        """1 if the walk goes on behind this member."""
        if state is MemberState.LIVE:
            if not self._past_lost:
                await self._look_ahead(index)
            return 0
        if state is MemberState.LOST and not self._past_lost:
            self.lost = member_ended_reason(member_id(self._group, index), index, status)
            return 0
        return 1

    async def _look_ahead(self, index: int) -> None:
        """A later member may be lost already."""
        id_ = await _first(self._operator, self._group, LOST, member_id(self._group, index))
        job = None if id_ is None else (await self._operator.get([id_]))[0]
        if job is not None and job.status in LOST:
            self.lost = member_ended_reason(job.id, member_index(self._group, job.id) or 0, job.status)
