"""An open group: its members are added one after the other, run meanwhile, and end it when it is sealed."""

import contextlib
import math
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from windlass.client.groups.add_lock import AddLock
from windlass.client.groups.cancelled import LONG, cancel_if_late, cancel_if_left, cancel_that_holds
from windlass.client.groups.handle import GroupHandle, group_handle
from windlass.client.groups.members import LOST, first_live, has_member_from
from windlass.client.groups.opening import begin_group, read_opening, seal_group, touch_group
from windlass.client.groups.plan import Part, Plan, check_part, queue_of
from windlass.client.groups.stored import check_group, is_open, without_stored
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal, blocking, refuse_on_loop
from windlass.client.tasks.joint import check_call_connection
from windlass.client.tasks.previous import check_no_previous
from windlass.client.tasks.task import Enqueuer
from windlass.core.groups.ids import Role, member_id, watcher_id
from windlass.core.groups.rules import ABANDONED
from windlass.core.jobs.job import Job, NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.errors import (
    EnqueueFailed,
    EnqueueUnknown,
    InvalidOption,
    KeyConflict,
    NotAllowedNow,
    QueueClosed,
    StoreUnavailable,
    WindlassError,
)
from windlass.store.clock import since_boot
from windlass.store.contract import Store

T = TypeVar("T")
REFUSED = (KeyConflict, QueueClosed)
"""Errors after which the jobs of an enqueue are certainly not stored."""
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
        """How many members this object added."""
        self.existing = False
        """Whether the group existed before."""
        self._sealed = False
        self._over = False
        """Whether it had completed: members dropped since then would run again."""
        self._begun = False
        self._uncertain: list[Part] = []
        """Members of an add that was interrupted or whose answer was lost; they may be stored at the next indexes."""
        self._adding = AddLock()
        self._touched = time.monotonic()
        self._home: Any = enqueuer
        """The app, once a handle has it; until then the enqueuer."""

    def __repr__(self) -> str:
        return f"OpenGroup({self._plan.rules.name or self.id!r}, {self.size} members)"

    async def aadd(self, job: Part) -> Handle[Any]:
        """Add a member: a job, or a chain. When this returns, it is stored.

        Raises NotAllowedNow if the group is sealed or was cancelled, or is lost and has `rest="cancel"`. After
        EnqueueUnknown, or if the call was cancelled, the member may be stored. The same call again stores it once;
        any other add, and the end of the block, first makes certain that it is stored.
        """
        (handle,) = await self.aadd_many([job])
        return handle

    async def aadd_many(self, jobs: Iterable[Part]) -> list[Handle[Any]]:
        """Add members, all of them or none."""
        given = list(jobs)
        async with self._adding:
            if self._uncertain and not self._is_repeated(given):
                await self._settle_uncertain()
            return await self._add(given)

    def _is_repeated(self, jobs: list[Part]) -> bool:
        """Whether an add has the same members as the one before it, whose outcome is unknown."""
        if len(jobs) != len(self._uncertain):
            return False
        pairs = zip(self._uncertain, jobs, strict=True)
        return all(
            _contents(self._plan.member(index, part))
            == _contents(self._plan.member(index, check_part(job, f"jobs[{index}]")))
            for index, (part, job) in enumerate(pairs, self.size)
        )

    async def _settle_uncertain(self) -> None:
        """Store the uncertain members again: their ids are the same, so none is stored twice."""
        try:
            await self._add(self._uncertain)
        except EnqueueUnknown as error:
            problem = "nothing was stored, as an earlier add may still be incomplete"
            raise EnqueueFailed(f"{problem}: {error}") from error
        except REFUSED:
            self._uncertain = []  # they are not stored, and never will be
            raise

    async def _add(self, jobs: list[Part]) -> list[Handle[Any]]:
        parts = [check_part(part, f"jobs[{index}]") for index, part in enumerate(jobs, self.size)]
        if not parts:
            return []
        for index, part in enumerate(parts, self.size):
            check_call_connection(part, f"jobs[{index}]", None, "members are not added in your transaction")
        store, began = await self._enqueuer._ready(), since_boot()
        frame = [] if self._begun else await self._begin(store, parts)
        members = [job for index, part in enumerate(parts, self.size) for job in self._plan.member(index, part)]
        check_no_previous(members)
        await self._check_open(store, self.size + len(parts), stored=not frame)
        handles = await self._store(self._frame(parts)[:1] if self._over else [*frame, *members], parts)
        first, self.size, self._uncertain = self.size, self.size + len(parts), []
        late = await self._is_late(store, members, began)
        if late and not all(handle.existing for handle in handles):
            raise NotAllowedNow("add a member to", self.id, Status.CANCELLED)
        found = {each.id: each for each in handles}
        ids = [member_id(self.id, index) for index in range(first, self.size)]
        return [found.get(id_) or Handle(self._home, id_, True) for id_ in ids]

    async def aseal(self) -> GroupHandle[T]:
        """Seal the group: it ends after its last member. The end of the block does that."""
        async with self._adding:
            return await self._seal()

    async def _seal(self) -> GroupHandle[T]:
        store = await self._enqueuer._ready()
        refused: WindlassError | None = None
        try:
            await self._settle_uncertain()
        except (*REFUSED, NotAllowedNow) as error:  # raised after the other groups are sealed
            refused = error
        if not self._begun:
            if not self._plan.callbacks:
                raise refused or InvalidOption("group", "has no members and no callback: nothing would run")
            await self._store(await self._begin(store, []))
        if self.existing and await has_member_from(store.operator, self.id, self.size):
            problem = f"has {self.size:,}, and an earlier run added more: add the same jobs in the same order"
            raise InvalidOption("jobs", f"the group {self._plan.rules.name!r} {problem}")
        if await seal_group(store, self.id, self.size) != self.size:
            raise NotAllowedNow("seal", self.id, "sealed")
        self._sealed = True
        if await first_live(store.operator, self.id) is None:
            await store.operator.run_now([self.id, watcher_id(self.id, Role.ALWAYS)])
        if refused is not None:
            raise refused
        return self.handle

    add = blocking(aadd)
    add_many = blocking(aadd_many, iterable="jobs")
    seal = blocking(aseal)

    @property
    def handle(self) -> GroupHandle[T]:
        """The handle of the group, with the members that were added so far."""
        return group_handle(
            self._home, self.id, self._plan.callbacks, self.size, existing=self.existing, returns=self._returns
        )

    def _stored_handle(self) -> GroupHandle[T]:
        """The handle for a second enqueue of an iterator: its members are not kept, and cannot be read again."""
        if not self._sealed:
            problem = "is an iterator that a failed enqueue has partly read: make the group again"
            raise InvalidOption("jobs", problem)
        self.existing = True
        return self.handle

    async def _begin(self, store: Store, parts: list[Part]) -> list[NewJob]:
        """The jobs to store with the first member. The document comes first: a group without one counts as sealed."""
        found = await begin_group(store, self.id)
        self.existing = found is not None
        if found is not None:
            self._check_same(found)
            self._over = found.status is Status.COMPLETED
            self._touched = -math.inf  # its last producer may have been silent for nearly an hour
        return [] if found is not None else self._frame(parts)

    def _check_same(self, found: Job) -> None:
        check_group(found, self._plan.rules.name)
        if not is_open(found):
            raise InvalidOption("id", f"there is a group {self._plan.rules.name!r} that was never open")

    def _frame(self, parts: list[Part]) -> list[NewJob]:
        """The jobs of the group without its members, its own job first."""
        return self._plan.frame(queue_of(parts, self._plan.callbacks), None)

    async def _check_open(self, store: Store, size: int, *, stored: bool) -> None:
        """Refuse members for a sealed group, and for a lost one with `rest="cancel"`."""
        if not stored:
            return
        if time.monotonic() - self._touched > TOUCH_SECONDS:
            await touch_group(store, self.id)
            self._touched = time.monotonic()
        group = (await store.operator.get([self.id]))[0]
        lost = group.status if group is not None and group.status in LOST else None
        opening = await read_opening(store, self.id)
        # A producer that sealed the group had stored all of them.
        is_whole = opening is not None and opening.size is not None and not opening.abandoned
        if lost and not is_whole and await cancel_that_holds(store, self.id):
            raise NotAllowedNow("add a member to", self.id, lost)
        if opening is not None and opening.size is not None and size > opening.size:
            raise NotAllowedNow("add a member to", self.id, "sealed")
        if lost and self._plan.rules.rest == "cancel" and opening is not None:
            raise NotAllowedNow("add a member to", self.id, lost)

    async def _is_late(self, store: Store, jobs: list[NewJob], began: Micros) -> bool:
        """Whether the group was cancelled while members were stored: then they are cancelled too."""
        with contextlib.suppress(StoreUnavailable):  # the coordinator cancels them
            took = since_boot() - began
            late = await cancel_if_late(store, self.id)
            return late or (took > LONG and await cancel_if_left(store, self.id, self.size, jobs))
        return False

    async def _store(self, jobs: list[NewJob], parts: Sequence[Part] = ()) -> list[Handle[Any]]:
        """Store the jobs of these members. If the call raises and they may be stored, they are kept as uncertain."""
        jobs = await without_stored(self._enqueuer, jobs) if self._plan.rules.name else jobs
        before, self._uncertain = self._uncertain, list(parts)
        try:
            handles = await self._enqueuer._enqueue_jobs(jobs, [Any] * len(jobs)) if jobs else []
        except WindlassError as error:
            if not isinstance(error, EnqueueUnknown):
                self._uncertain = before  # nothing was stored by this call
            raise
        self._home = handles[0]._home if handles else self._home
        if not self._begun and not self.existing and handles and handles[0].existing:
            await self._met()
        self._begun = True
        return handles

    async def _met(self) -> None:
        """Check what another producer stored under this id since the first read; it may be another group."""
        self.existing = True
        found = (await self._enqueuer._stored([self.id]))[0]
        if found is not None:
            self._check_same(found)

    async def _afailed(self) -> None:
        """Cancel a group without a name after its block raised, since no program can continue it."""
        async with self._adding:
            if self._plan.rules.name or not (self._begun or self._uncertain):
                return
            # The coordinator abandons it later; the error of the block is raised.
            with contextlib.suppress(StoreUnavailable, EnqueueFailed, EnqueueUnknown):
                await self._abandon()

    async def _abandon(self) -> None:
        if not self._begun:
            if (await self._enqueuer._stored([self.id]))[0] is None:
                return
            await self._store(self._frame(self._uncertain)[:1])
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
        refuse_on_loop("with app.group(...)", "async with app.group(...)")
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


def _contents(jobs: list[NewJob]) -> list[tuple[Any, ...]]:
    """The fields of a job, without its task object, which differs for each `using(...)`."""
    return [tuple(getattr(job, name) for name in NewJob.__struct_fields__) for job in jobs]
