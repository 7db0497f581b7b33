"""An open group: its members are added one after the other, run meanwhile, and end it when it is sealed."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from windlass.client.groups.handle import GroupHandle, group_handle
from windlass.client.groups.members import LOST, first_live
from windlass.client.groups.opening import open_group, read_opening, seal_group, touch_group
from windlass.client.groups.plan import Part, Plan, check_part, queue_of
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.tasks.previous import check_no_previous
from windlass.client.tasks.task import Enqueuer
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE, Role, member_id, watcher_id
from windlass.core.groups.rules import ABANDONED
from windlass.core.jobs.job import Job, NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption, NotAllowedNow
from windlass.store.contract import Store

T = TypeVar("T")
TOUCH_SECONDS = 60.0
"""How often a producer shows that it is alive."""


class OpenGroup(Generic[T]):
    """A group that is open until its block ends: `with app.group("import-7", then=report) as g: g.add(load.job(1))`.

    Members run as soon as they are added, and may add others (`ctx.group`). They are numbered in the order in which
    they are added: a program that runs again with the same name adds each of them once. A block that raises leaves a
    group with a name open, for the next run, and cancels another one. A group that is open, and to which nothing was
    added for an hour, is cancelled as `abandoned`.
    """

    def __init__(self, enqueuer: Enqueuer, plan: Plan, returns: Any = Any) -> None:
        self._enqueuer, self._plan, self._returns = enqueuer, plan, returns
        self.id = plan.id
        self.size = 0
        """Members that were added here."""
        self.existing = False
        """Whether the group existed before."""
        self._over = False
        """Whether it had completed: members that are dropped by now would run again."""
        self._begun = False
        self._touched = time.monotonic()
        self._home: Any = enqueuer
        """The app, as soon as a handle has told it."""

    def __repr__(self) -> str:
        return f"OpenGroup({self._plan.rules.name or self.id!r}, {self.size} members)"

    async def aadd(self, job: Part) -> Handle[Any]:
        """Add a member: a job, or a chain. When this returns, it is stored.

        Raises NotAllowedNow if the group is sealed, or was cancelled and does not finish the rest.
        """
        (handle,) = await self.aadd_many([job])
        return handle

    async def aadd_many(self, jobs: Iterable[Part]) -> list[Handle[Any]]:
        """Add members, all of them or none."""
        parts = [check_part(part, f"jobs[{place}]") for place, part in enumerate(jobs, self.size)]
        if not parts:
            return []
        store = await self._enqueuer._ready()
        frame = [] if self._begun else await self._begin(store, parts)
        members = [job for index, part in enumerate(parts, self.size) for job in self._plan.member(index, part)]
        check_no_previous(members)
        await self._check_open(store, self.size + len(parts), stored=not frame)
        handles = await self._store(self._frame(parts)[:1] if self._over else [*frame, *members])
        first, self.size = self.size, self.size + len(parts)
        found = {each.id: each for each in handles}
        ids = [member_id(self.id, index) for index in range(first, self.size)]
        return [found.get(id_) or Handle(self._home, id_, True) for id_ in ids]

    async def aseal(self) -> GroupHandle[T]:
        """No more members come from here: the group ends with the last of them. The end of the block does that."""
        store = await self._enqueuer._ready()
        if not self._begun:
            if not self._plan.callbacks:
                raise InvalidOption("group", "has no members and no callback: nothing would run")
            await self._store(await self._begin(store, []))
        if await seal_group(store, self.id, self.size) != self.size:
            raise NotAllowedNow("seal", self.id, "sealed")
        if await first_live(store.operator, self.id) is None:
            await store.operator.run_now([self.id, watcher_id(self.id, Role.ALWAYS)])
        return self.handle

    add = blocking(aadd)
    add_many = blocking(aadd_many, iterable="jobs")
    seal = blocking(aseal)

    @property
    def handle(self) -> GroupHandle[T]:
        """Of the group, with the members that were added so far."""
        return group_handle(
            self._home, self.id, self._plan.callbacks, self.size, existing=self.existing, returns=self._returns
        )

    async def _begin(self, store: Store, parts: list[Part]) -> list[NewJob]:
        """What is stored with the first member. The document comes first: a group without one counts as sealed."""
        found = (await store.operator.get([self.id]))[0]
        self.existing = found is not None
        if found is not None:
            check_group(found, self._plan.rules.name)
            self._over = found.status is Status.COMPLETED
            if not _is_open(found):
                raise InvalidOption("id", f"there is a group {self._plan.rules.name!r} that was never open")
        await open_group(store, self.id, anew=found is None)
        return [] if found is not None else self._frame(parts)

    def _frame(self, parts: list[Part]) -> list[NewJob]:
        """The group comes first."""
        return self._plan.frame(queue_of(parts, self._plan.callbacks), None)

    async def _check_open(self, store: Store, size: int, *, stored: bool) -> None:
        """A sealed group takes no more; a cancelled one that cancels its rest neither."""
        if not stored:
            return
        if time.monotonic() - self._touched > TOUCH_SECONDS:
            await touch_group(store, self.id)
            self._touched = time.monotonic()
        opening = await read_opening(store, self.id)
        if opening is not None and opening.size is not None and size > opening.size:
            raise NotAllowedNow("add a member to", self.id, "sealed")
        group = (await store.operator.get([self.id]))[0]
        if group is not None and group.status in LOST and self._plan.rules.rest == "cancel" and opening is not None:
            raise NotAllowedNow("add a member to", self.id, group.status)

    async def _store(self, jobs: list[NewJob]) -> list[Handle[Any]]:
        jobs = await without_stored(self._enqueuer, jobs) if self._plan.rules.name else jobs
        handles = await self._enqueuer._enqueue_jobs(jobs, [Any] * len(jobs)) if jobs else []
        self._home = handles[0]._home if handles else self._home
        self._begun = True
        return handles

    async def _afailed(self) -> None:
        """The block raised: a group that has no name cannot be continued."""
        if self._begun and not self._plan.rules.name:
            home = self._home
            await seal_group(await self._enqueuer._ready(), self.id, self.size, abandoned=True)
            await home.flows.acancel(self.id, ABANDONED.split(":")[0])

    _failed = blocking(_afailed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.aseal() if kind is None else self._afailed())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.seal()
        else:
            self._failed()

    def _portal(self) -> Portal:
        return self._enqueuer._portal()


def check_group(found: Job, name: str) -> None:
    """The job with the id of this name must be a group: graphs have the same ids."""
    if found.type != GROUP_TYPE:
        raise InvalidOption("id", f"there is a flow {name!r}, which is no group")


def _is_open(group: Job) -> bool:
    return isinstance(group.payload, dict) and bool(group.payload.get("open"))


async def without_stored(enqueuer: Enqueuer, jobs: list[NewJob]) -> list[NewJob]:
    """Without members that stand for other jobs and are stored already, and without those jobs.

    The key of such a job may be free again: it would run a second time, and for nothing.
    """
    standing = {job.id: job for job in jobs if job.type == MEMBER_TYPE}
    if not standing:
        return jobs
    found = await (await enqueuer._ready()).operator.get(list(standing))
    behind = {job.id: job for job in jobs}
    gone = {job.id for job in found if job is not None}
    waiting = [standing[id_] for id_ in gone]
    while waiting:
        parents = [behind[id_] for job in waiting for id_ in job.parents if id_ in behind]
        gone |= {job.id for job in parents}
        waiting = parents
    return [job for job in jobs if job.id not in gone]
