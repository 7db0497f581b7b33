"""The job of a group: it reads the members, and ends when it is decided whether its callback runs.

A group is a scheduled job of the type `windlass.group`, which every worker knows. Its members are its children.
Ends of members wake it (`client/groups/ends.py`); it also runs by itself at growing intervals. Its callback
depends on it as a link of a chain depends on the link before.
"""

from typing import Any

import msgspec

from windlass.client.graphs.skipped import is_skipped
from windlass.client.groups.cancelled import cancel_that_holds
from windlass.client.groups.cancelling import cancel_members
from windlass.client.groups.look import Known, Look, Seen, opening_of
from windlass.client.groups.members import ALIVE, LOST, PAGE, count_added, stored_size
from windlass.client.groups.opening import Opening, seal_group
from windlass.client.groups.plan import MAX_IN_LIST
from windlass.client.groups.results import Results
from windlass.client.tasks.context import Context, entered
from windlass.client.tasks.link import Home
from windlass.core.codec import encode, size_of
from windlass.core.control import Cancel, Dead, Snooze
from windlass.core.groups.ids import Role, before_member
from windlass.core.groups.need import needed
from windlass.core.groups.rules import (
    ABANDONED,
    ABANDONED_AFTER,
    LOST_NOTE,
    SKIPPED,
    GroupPayload,
    Verdict,
    noted_loss,
    seconds_until_next_look,
    too_late_reason,
    verdict,
)
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.status import WAITING, Status
from windlass.errors import BlobUnavailable, ResultUnavailable, StoreUnavailable
from windlass.store.contract import OperatorStore, Store

EXPIRY_PAUSE = 1.0
"""Seconds after the expiry of a member until the next look."""


async def watch_group(ctx: Context, group: str, size: int, **rules: Any) -> Any:
    """Return if the callback may run; raise Cancel if it never will, and Snooze while that is undecided."""
    payload = msgspec.convert({"group": group, "size": size, **rules}, GroupPayload)
    home = entered.get().home
    watch = Watch(home, ctx, payload)
    try:
        return await watch.run()
    except StoreUnavailable:
        pass  # the next run starts without what this one knows
    raise Snooze(watch.pause)


async def stand_for(value: Any) -> Any:
    """Complete a member that represents another job with the result of that job."""
    return value


class Watch:
    """One attempt of a job that watches a group."""

    def __init__(self, home: Home, ctx: Context, group: GroupPayload) -> None:
        self._home, self._ctx, self._group = home, ctx, group
        self._role = Role(group.role)
        self.pause = seconds_until_next_look(ctx.job.snoozes)
        """Seconds until the next look."""

    async def run(self) -> Any:
        """Count the members, and act on the count."""
        store = await self._home._ready()
        wanted, reason, seen = await self._judge(store)
        if wanted is Verdict.RUN:
            return await self._results(seen)
        if wanted is Verdict.CANCEL:
            if self._role is Role.THEN and self._group.rest == "cancel":
                await cancel_members(store.operator, self._group.group, tuple(sorted(WAITING)), reason)
            raise Cancel(reason)
        raise Snooze(self.pause)

    async def _judge(self, store: Store) -> tuple[Verdict, str, Seen]:
        if self._role is Role.ON_DEAD:
            return await self._judge_on_dead(store)
        seen, opening = await self._look(store)
        is_given_up = opening is not None and opening.abandoned
        if not is_given_up and seen.reason is None and seen.size is None and self._is_abandoned(opening):
            await self._seal(store)
            is_given_up = True
        if is_given_up and self._role is Role.THEN and seen.reason is None:
            seen = msgspec.structs.replace(seen, reason=ABANDONED)
        if not seen.ended and self._role is Role.THEN and self._group.within:
            seen = await self._at_deadline(store, seen, self._group.within - self._age(opening))
        await self._keep(seen)
        if seen.expires_at is not None:
            # A claim may find that it has expired, and reports no ends.
            left = (to_micros(seen.expires_at) - _claimed_at(self._ctx.job)) / SECOND
            self.pause = min(self.pause, max(left, 0) + EXPIRY_PAUSE)
        if self._role is Role.ALWAYS and seen.ended:
            return await self._judge_always(store.operator, seen)
        return verdict(self._role, ended=seen.ended, lost=seen.reason is not None), seen.reason or "", seen

    async def _judge_on_dead(self, store: Store) -> tuple[Verdict, str, Seen]:
        operator, unknown = store.operator, Seen(known=Known(), size=self._group.size)
        job = (await operator.get([self._group.group]))[0]
        completed, lost = await _ends_of(operator, self._group.group, job)
        if lost and (cancelled := await cancel_that_holds(store, self._group.group)) is not None:
            return Verdict.CANCEL, cancelled.reason, unknown  # it was stored after the cancel
        skipped = lost and job is not None and await is_skipped(operator, job)
        found = verdict(self._role, ended=completed, lost=lost, skipped=skipped)
        return found, SKIPPED if skipped else "its group completed", unknown

    async def _judge_always(self, operator: OperatorStore, seen: Seen) -> tuple[Verdict, str, Seen]:
        """Decide about `always`. A group that waits for a node or link has not begun; on Redis its members may be
        cancelled before it.
        """
        job = (await operator.get([self._group.group]))[0]
        ended = job is None or job.status is not Status.BLOCKED
        skipped = job is not None and await is_skipped(operator, job)
        return verdict(self._role, ended=ended, lost=False, skipped=skipped), SKIPPED, seen

    async def _look(self, store: Store) -> tuple[Seen, Opening | None]:
        opening = await opening_of(store, self._group)
        look = Look(store, self._group, opening, self._age(None))
        seen = await look.run(await self._known(store.operator))
        if not look.sealed and not seen.ended and (now := await opening_of(store, self._group)) != opening:
            # The group may have been sealed meanwhile: its producer does not wake a running group.
            return await Look(store, self._group, now, self._age(None)).run(seen.known), now
        return seen, opening

    def _age(self, opening: Opening | None) -> Micros:
        """The age at this claim by the store's clock, since the retry if there was one."""
        job = self._ctx.job
        began = max(to_micros(job.created_at), 0 if opening is None else opening.since)
        return _claimed_at(job) - began

    def _is_abandoned(self, opening: Opening | None) -> bool:
        return opening is not None and _claimed_at(self._ctx.job) - opening.touched >= ABANDONED_AFTER

    async def _seal(self, store: Store) -> None:
        """Seal the group in place of its producer, with the members that are stored."""
        group = self._group.group
        await seal_group(store, group, await stored_size(store.operator, group), abandoned=True)

    async def _at_deadline(self, store: Store, seen: Seen, left: Micros) -> Seen:
        """When the time is over, cancel the live members and count them as lost at once."""
        if left > 0 or seen.reason is not None:
            self.pause = min(self.pause, max(0, left) / SECOND)
            return seen
        group, reason = self._group.group, too_late_reason(self._group.within)
        if seen.size is None:
            await self._seal(store)
        await cancel_members(store.operator, group, ALIVE, reason)
        if seen.size is not None and self._group.need is not None:
            first = before_member(group, 0)
            completed = await count_added(store.operator, group, (Status.COMPLETED,), first)
            lost = await count_added(store.operator, group, (*LOST, *ALIVE), first)
            if completed >= needed(self._group.need, max(seen.size, completed + lost)):
                return seen  # `then` runs when the members that were asked to stop have ended
        return msgspec.structs.replace(seen, reason=reason)

    async def _known(self, operator: OperatorStore) -> Known:
        """The result of earlier counts, kept as the job's progress; one page alone is not worth a write."""
        if self._group.size <= PAGE and not self._group.open:
            return Known()
        job = (await operator.get([self._ctx.job.id]))[0]
        if job is None or job.progress is None:
            return Known()
        return Known(int(job.progress.done), noted_loss(job.progress.note))

    async def _keep(self, seen: Seen) -> None:
        note = None if seen.known.lost is None else LOST_NOTE.format(seen.known.lost)
        await self._ctx.progress(seen.known.done, seen.size, note)

    async def _results(self, seen: Seen) -> Any:
        results: Results[Any] = Results(self._home, self._group.group, seen.size or 0, added=seen.added)
        if self._group.as_list and len(results) > MAX_IN_LIST:
            limit = f"{len(results):,} members, the limit for a list is {MAX_IN_LIST:,}"
            raise Dead(f"the group has {limit}: let the callback take Results[T]")
        return await self._list(results) if self._group.as_list else results.reference()

    async def _list(self, results: Results[Any]) -> list[Any]:
        """Every result, for a callback that takes a list."""
        try:
            found = [value async for value in results]
        except (BlobUnavailable, ResultUnavailable) as error:
            raise Dead(str(error)) from error
        if (bytes_ := size_of(encode(found, "results"))) > self._home.payload_limit:
            limit = f"{bytes_:,} bytes, the limit is {self._home.payload_limit:,}"
            raise Dead(f"the results together have {limit}: let the callback take Results[T] instead of a list")
        return found


async def _ends_of(operator: OperatorStore, group: JobId, job: Job | None) -> tuple[bool, bool]:
    """Whether the group has completed, and whether it ended otherwise; a group without a job is not kept."""
    if job is not None:
        return job.status is Status.COMPLETED, job.status in LOST
    outcome = (await operator.outcomes([group]))[0]
    return outcome == Status.COMPLETED, outcome is not None and outcome != Status.COMPLETED


def _claimed_at(job: Job) -> Micros:
    return to_micros(job.claimed_at or job.created_at)
