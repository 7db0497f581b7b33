"""One count of the members of a group: whether all have ended, and whether too many are lost."""

from datetime import datetime

import msgspec

from windlass.client.groups.members import (
    ENDED,
    LOST,
    Walk,
    count_added,
    first_live,
    first_live_outside,
    first_lost,
    has_added,
)
from windlass.client.groups.opening import Opening, read_opening
from windlass.core.groups.ids import Role, before_added, member_index
from windlass.core.groups.need import allowed_losses
from windlass.core.groups.rules import GroupPayload, too_few_reason
from windlass.core.moments import Micros
from windlass.store.contract import OperatorStore, Store

ANY_NUMBER = 1 << 40
"""More than a group can have members."""


class Known(msgspec.Struct, frozen=True):
    """The result of earlier counts: how many members from the first on have ended, and how many of these are lost."""

    done: int = 0
    lost: int | None = None
    """None: it was not counted."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one count."""

    ended: bool = False
    """No member is live, and none can be added."""
    reason: str | None = None
    """Why the group is lost, if it is."""
    known: Known
    size: int | None
    """Members that its producer added; None: more may come."""
    added: int = 0
    """Members that members added, if all have ended."""
    expires_at: datetime | None = None
    """When the first live member expires, if it waits and does."""


class Look:
    """Counts the members of one group for one of its callbacks."""

    def __init__(self, store: Store, group: GroupPayload, opening: Opening | None, age: Micros) -> None:
        """`opening` is None if the group was never open, or its document is not kept any more."""
        self._operator: OperatorStore = store.operator
        self._group = group
        self._role = Role(group.role)
        self._age = age
        self.sealed = not group.open or opening is None or opening.size is not None
        self._size = group.size if not group.open else None if opening is None else opening.size

    async def run(self, known: Known) -> Seen:
        """Continue after the members that earlier counts covered."""
        allowed = self._allowed(self._size if self.sealed else None)
        grows = await self._grows(allowed)
        allowed = ANY_NUMBER if grows else allowed
        counts_lost = allowed is not None and allowed > 0
        start = Known() if counts_lost and known.lost is None else known
        walk = Walk(self._operator, self._group.group, self._size, allowed=allowed, age=self._age)
        at_end = await walk.run(start.done, start.lost or 0) or self._size is None
        now_known = Known(walk.done, walk.lost if counts_lost else None)
        if walk.reason is not None and counts_lost and start.done:
            return await self.run(Known())  # a member that was counted may have been retried since
        if walk.reason is not None or not at_end:
            return Seen(known=now_known, size=self._size, reason=walk.reason, expires_at=walk.expires_at)
        one_look = self._size is not None and not start.done and not grows
        if one_look and not await has_added(self._operator, self._group.group):
            # This count covered all of them: the common case needs no more reads.
            return Seen(ended=True, known=now_known, size=walk.done)
        if (live := await first_live_outside(self._operator, self._group.group, start.done, walk.done)) is not None:
            index = member_index(self._group.group, live)
            again = now_known if index is None or index >= walk.done else Known() if counts_lost else Known(index)
            lost = None if grows else await self._lost_added(allowed, walk)
            return Seen(known=again, size=self._size, reason=lost)
        if not self.sealed:
            return Seen(known=now_known, size=None)
        if counts_lost and start.done:
            return await self.run(Known())
        return await self._ended(walk, now_known)

    def _allowed(self, size: int | None) -> int | None:
        return None if self._role is Role.ALWAYS else allowed_losses(self._group.need, size)

    async def _grows(self, allowed: int | None) -> bool:
        """Whether members add members, or must: how many may be lost is known only when all have ended."""
        if allowed is None or self._group.need is None:
            return False
        return allowed < 0 or await has_added(self._operator, self._group.group)

    async def _ended(self, walk: Walk, known: Known) -> Seen:
        """Whether every stored member has ended; members that members added are counted twice.

        A member is added before the one that adds it ends. So if both counts are equal, and none was live between
        them, none is missing, also where queues are read one after the other.
        """
        group, size = self._group.group, walk.done
        added = await count_added(self._operator, group, ENDED, before_added(group))
        if added and (
            await first_live(self._operator, group) is not None
            or await count_added(self._operator, group, ENDED, before_added(group)) != added
        ):
            return Seen(known=known, size=size)
        allowed = self._allowed(size + added)
        if allowed is not None and allowed < 0:
            reason: str | None = too_few_reason(self._group.need, size + added)
        else:
            reason = await self._lost_added(allowed, walk)
        return Seen(ended=reason is None, reason=reason, known=known, size=size, added=added)

    async def _lost_added(self, allowed: int | None, walk: Walk) -> str | None:
        """Why the group is lost because of members that were added, or retried after they were counted; else None."""
        group = self._group.group
        if allowed is None:
            return None
        if allowed == 0:
            return await first_lost(self._operator, group)
        lost = await count_added(self._operator, group, LOST, before_added(group))
        if walk.lost + lost <= allowed:
            return None
        found = await first_lost(self._operator, group, before_added(group)) or await first_lost(
            self._operator, group
        )
        return found or f"{walk.lost + lost:,} of its members did not complete"


async def opening_of(store: Store, group: GroupPayload) -> Opening | None:
    """The document of the group, read only if it may have one."""
    return await read_opening(store, group.group) if group.open or group.within else None
