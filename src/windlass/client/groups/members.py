"""The members of a group, read from the store: which have ended, which is live, and which are lost."""

from collections.abc import AsyncIterator
from datetime import datetime

from windlass.core.groups.ids import MAX_MEMBERS, before_added, before_member, is_member_id, member_id, member_index
from windlass.core.groups.rules import MemberState, member_ended_reason, member_state, stored_within
from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, LIVE, WAITING, Status
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter

PAGE = 1000
MAX_COUNTED = 50_000
"""Max members that one statement counts."""
MAX_AHEAD = 10
"""Pages of lost members that are read behind a live one."""
MAX_FOREIGN = 10
"""Children of a group that are skipped, such as callbacks: they sort after its members."""
LOST = (Status.CANCELLED, Status.DEAD)
ALIVE = tuple(sorted(LIVE))
ENDED = tuple(sorted(FINISHED))


async def first_live(
    operator: OperatorStore, group: JobId, after: JobId | None = None, before: JobId | None = None
) -> JobId | None:
    """The live member with the lowest id, after and before given ones; None: all have ended."""
    return await _first(operator, group, ALIVE, after, before)


async def first_live_outside(operator: OperatorStore, group: JobId, start: int, end: int) -> JobId | None:
    """The live member with the lowest id, except those with these indexes, which the caller has just read."""
    found = await first_live(operator, group, before=member_id(group, start)) if start else None
    return found or await first_live(operator, group, after=before_member(group, end))


async def first_lost(operator: OperatorStore, group: JobId, after: JobId | None = None) -> str | None:
    """The reason why a group is lost whose members must all complete; None: no kept member is lost."""
    id_ = await _first(operator, group, LOST, after)
    return None if id_ is None else await lost_reason(operator, group, id_)


async def lost_reason(operator: OperatorStore, group: JobId, id_: JobId) -> str | None:
    """Why this member makes its group lost; None if it is live again."""
    job = (await operator.get([id_]))[0]
    if job is None or job.status not in LOST:
        return None
    return member_ended_reason(id_, member_index(group, id_), job.status)


async def _first(
    operator: OperatorStore,
    group: JobId,
    status: tuple[Status, ...],
    after: JobId | None,
    before: JobId | None = None,
) -> JobId | None:
    """The first such member, read with a limit of 1: a store may have to read every child to find a second one.

    Ids of members sort before those of callbacks, which are children of the group too.
    """
    start = max(after or "", before_member(group, 0))
    for _ in range(MAX_FOREIGN):
        found = await operator.select(JobFilter(parent=group, status=status, id_before=before), 1, start)
        if not found or is_member_id(group, found[0]):
            return found[0] if found else None
        start = found[0]
    return None


async def pages_of(
    operator: OperatorStore, group: JobId, status: tuple[Status, ...], after: JobId | None = None, size: int = PAGE
) -> AsyncIterator[list[JobId]]:
    """Members with one of these statuses, in order, page by page; a page may be empty."""
    start = before_member(group, 0) if after is None else after
    while ids := await operator.select(JobFilter(parent=group, status=status), size, start):
        start = ids[-1]
        yield [id_ for id_ in ids if is_member_id(group, id_)]
        if len(ids) < size:
            return  # members that end meanwhile would make every further page a walk over all live members


class Walk:
    """Counts members from the first up to the first live one."""

    def __init__(
        self, operator: OperatorStore, group: JobId, size: int | None, *, allowed: int | None, age: Micros
    ) -> None:
        """At most `allowed` members may be lost; None means any number, and lost ones are not counted.

        Without a size the walk ends at the first index that is not stored. `age` is the age of the group.
        """
        self._operator, self._group = operator, group
        self._stored = age >= stored_within(size or 0)
        self._size = size
        self._allowed = allowed
        self.done = 0
        """Members from the first on that have ended."""
        self.lost = 0
        """How many of them did not complete, if that is counted."""
        self.reason: str | None = None
        """Why the group is lost, if it is."""
        self.expires_at: datetime | None = None
        """When the live member at which it stopped expires, if it waits and does."""

    async def run(self, done: int = 0, lost: int = 0) -> bool:
        """Continue after the known members; returns whether all members have ended, or the group is lost."""
        self.done, self.lost, self.reason = done, lost, None
        most = MAX_MEMBERS if self._size is None else self._size
        if self._size is not None and most - done > PAGE:
            await self._count_completed(most)
        while self.done < most and self.reason is None:
            before = self.done
            await self._count_ended(most)
            if self.done - before < PAGE and self.done < most and self.reason is None:
                before = self.done
                await self._step(most)
                if self.done == before:
                    break
        return self.done >= most or self.reason is not None

    async def _count_completed(self, most: int) -> None:
        """Count completed members in bulk, up to the first that is live, lost or dropped."""
        while (left := min(MAX_COUNTED, most - self.done)) > PAGE:
            start, before = before_member(self._group, self.done), member_id(self._group, self.done + left)
            found = await self._operator.count_completed(self._group, start, before)
            completed, live = found or (0, None)
            if found is None or completed != self._index(live, self.done + left) - self.done:
                return
            self.done += completed
            if live is not None:
                return

    def _index(self, id_: JobId | None, default: int) -> int:
        found = None if id_ is None else member_index(self._group, id_)
        return default if found is None else found

    async def _count_ended(self, most: int) -> None:
        """Count one page; if none may be lost, up to the first that did not complete."""
        first, start = self.done, before_member(self._group, self.done)
        counted = (Status.COMPLETED,) if self._allowed == 0 else ENDED
        end = member_id(self._group, min(first + PAGE, most))
        wanted = JobFilter(parent=self._group, status=counted, id_before=end)
        found = set(await self._operator.select(wanted, PAGE, start))
        while self.done < most and member_id(self._group, self.done) in found:
            self.done += 1
        if self._allowed and self.done > first:
            await self._count_lost(start, member_id(self._group, self.done))

    async def _count_lost(self, start: JobId, end: JobId) -> None:
        wanted = JobFilter(parent=self._group, status=LOST, id_before=end)
        await self._lose(await self._operator.select(wanted, PAGE, start))

    async def _lose(self, ids: list[JobId]) -> None:
        """Count members that did not complete."""
        left = self._left()
        self.lost += len(ids)
        if left is not None and len(ids) > left:
            self.reason = await lost_reason(self._operator, self._group, ids[left])

    def _left(self) -> int | None:
        return None if self._allowed is None else max(0, self._allowed - self.lost)

    async def _step(self, most: int) -> None:
        """Classify the member at which the walk stopped: live, lost, dropped, or ended meanwhile."""
        job = (await self._operator.get([member_id(self._group, self.done)]))[0]
        if job is not None:
            self.expires_at = job.expires_at if job.status in WAITING else None
            await self._pass(member_state(job.status, None, stored=self._stored), job.status)
            return
        ahead = range(self.done, min(self.done + PAGE, most))
        for ahead_by, outcome in enumerate(await self._operator.outcomes([member_id(self._group, i) for i in ahead])):
            if outcome is None and (ahead_by or self._size is None):
                return
            before = self.done
            await self._pass(member_state(None, outcome, stored=self._stored), None)
            if self.done == before:
                return

    async def _pass(self, state: MemberState, status: Status | None) -> None:
        """Continue after this member, unless it is live or exceeds the allowed losses."""
        if state is MemberState.LIVE:
            await self._look_ahead()
            return
        if state is MemberState.LOST:
            left = self._left()
            self.lost += 1
            if left == 0:
                self.reason = member_ended_reason(member_id(self._group, self.done), self.done, status)
                return
        self.done += 1

    async def _look_ahead(self) -> None:
        """Check whether too many members behind a live one are lost."""
        left = self._left()
        if left is None:
            return
        found: list[JobId] = []
        size, after = min(left + 1, PAGE), member_id(self._group, self.done)
        async for ids in pages_of(self._operator, self._group, LOST, after, size):
            found += ids
            if len(found) > left or len(found) >= MAX_AHEAD * PAGE:
                break
        if len(found) > left:
            self.reason = await lost_reason(self._operator, self._group, found[left])


async def stored_size(operator: OperatorStore, group: JobId) -> int:
    """One more than the highest index of a member that is kept."""
    size = 0
    async for ids in pages_of(operator, group, (*ALIVE, *ENDED)):
        size = max([size, *(1 + index for id_ in ids if (index := member_index(group, id_)) is not None)])
    return size


async def has_member_from(operator: OperatorStore, group: JobId, index: int) -> bool:
    """Whether its producer added members with this index, or behind it."""
    wanted = JobFilter(parent=group, id_before=before_added(group))
    return bool(await operator.select(wanted, 1, before_member(group, index)))


async def has_added(operator: OperatorStore, group: JobId) -> bool:
    """Whether there are members that members added; the callbacks come behind them."""
    found = await operator.select(JobFilter(parent=group), 1, before_added(group))
    return bool(found) and is_member_id(group, found[0])


async def count_added(operator: OperatorStore, group: JobId, status: tuple[Status, ...], after: JobId) -> int:
    """How many members after an id have one of these statuses."""
    found = 0
    async for ids in pages_of(operator, group, status, after):
        found += len(ids)
    return found
