"""group(...): many jobs, enqueued together or as they come, and callbacks that run when they have ended."""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from windlass.client.groups.cancelled import MAX_AT_ONCE, cancel_if_late
from windlass.client.groups.handle import GroupHandle, group_handle
from windlass.client.groups.open_group import TOUCH_SECONDS, OpenGroup
from windlass.client.groups.plan import (
    Callbacks,
    ChainPart,
    Linked,
    Part,
    Plan,
    Rules,
    check_callback,
    check_part,
    queue_of,
)
from windlass.client.groups.results import Results
from windlass.client.groups.stored import check_group, without_stored
from windlass.client.runtime.portal import Portal, as_iterator, refuse_on_loop
from windlass.client.tasks.previous import check_no_previous
from windlass.client.tasks.task import Enqueuer, Task, TaskJob
from windlass.core.groups.ids import MAX_MEMBERS, Role, named_group_id, new_group_id
from windlass.core.groups.need import check_need
from windlass.core.ids import JobId
from windlass.core.jobs.job import MAX_PER_KEY, NewJob
from windlass.core.moments import DAY, Duration, Micros, duration, show_duration
from windlass.core.names import check_key
from windlass.core.suggest import unknown_option
from windlass.core.text import shown
from windlass.errors import InvalidOption

T = TypeVar("T")
R = TypeVar("R")

Callback = Task[Any, Any, R] | TaskJob[R]
MAX_NAME_BYTES = 200
MAX_WITHIN: Micros = 30 * DAY
PORTION = 5000
"""Members of a generator that are stored at once."""


class GroupOptions(TypedDict, total=False):
    """The options of a group.

    - `on_dead`, `always`: callbacks, beside `then`
    - `need`: how many members must complete: "all", a number, or a share such as "95%"
    - `rest`: what becomes of members that have not started when `need` is out of reach: "finish" or "cancel"
    - `within`: how long the group may take from its enqueue on, at most 30 days; then live members are cancelled
    - `max_running`: how many members may run at once; they must be in one queue and have no key of their own
    """

    on_dead: Callback[Any] | None
    always: Callback[Any] | None
    need: int | str
    rest: Literal["finish", "cancel"]
    within: Duration | None
    max_running: int | None


class Group(Generic[T]):
    """Members and callbacks, checked but not enqueued. Their ids are fixed: enqueueing it twice adds none."""

    def __init__(self, id_: JobId, rules: Rules, callbacks: Callbacks, parts: Iterable[Any]) -> None:
        self.id = id_
        self._rules, self._callbacks = rules, callbacks
        self._parts: list[Part] = []
        self._source: Iterator[Any] | None = None
        """The members that are not read yet, if they come from neither a list nor a tuple."""
        self._streamed: OpenGroup[T] | None = None
        """The group, once its members are stored in portions: they are not kept, and cannot be read again."""
        self.jobs: tuple[NewJob, ...] = ()
        """All of its jobs, if its members come from a list: that is checked as a whole when the group is made."""
        if isinstance(parts, list | tuple):
            self._keep(parts)
            self.jobs = tuple(self._linked().jobs)
        else:
            self._source = as_iterator(parts, "jobs")

    def __repr__(self) -> str:
        size = f"{len(self._parts)} jobs" if self._source is None else "jobs of an iterator"
        return f"group({size}, id={self._rules.name or self.id!r})"

    async def aenqueue(self, *, connection: object = None) -> GroupHandle[T]:
        """Enqueue the group, its members and its callbacks: of a list all of it, or nothing.

        The members of a generator are stored in portions of 5,000, and run meanwhile; a group with an `id` goes on
        where it was interrupted when it is enqueued again. With a `connection` to the same database all of it is part
        of its transaction: your commit decides. A group with the same `id` is not stored again; one with another
        number of members is refused.
        """
        if self._streamed is not None:
            return self._streamed._stored_handle()
        if (stream := self._stream(connection)) is None:
            return await self._store(connection)
        async with stream:
            while portion := self._next_portion():
                await stream.aadd_many(portion)
        return stream.handle

    def enqueue(self, *, connection: object = None) -> GroupHandle[T]:
        """As `aenqueue`, for code without an event loop; a generator runs in the caller's thread."""
        refuse_on_loop("enqueue")
        if self._streamed is not None:
            return self._streamed._stored_handle()
        if (stream := self._stream(connection)) is None:
            return self._portal().run(self._store(connection), here=connection is not None)
        with stream:
            while portion := self._next_portion():
                stream.add_many(portion)
        return stream.handle

    def _stream(self, connection: object) -> OpenGroup[T] | None:
        """An open group if there may be more members than one portion; else all members are read now."""
        if self._source is None or connection is not None:
            self._read_all()
            return None
        self._keep([*self._parts, *islice(self._source, PORTION - len(self._parts))])
        if len(self._parts) < PORTION and not (self._rules.name and (self._parts or self._callbacks)):
            self._source = None
            return None
        self._streamed = OpenGroup(self._enqueuer, self._plan(None), self._returns)
        return self._streamed

    def _next_portion(self) -> list[Part]:
        """The next members of a stream; the first portion is read already.

        A later one ends after TOUCH_SECONDS: a group to which nothing is added for an hour is abandoned.
        """
        assert self._source is not None
        portion, self._parts = self._parts, []
        if portion:
            return portion
        end = time.monotonic() + TOUCH_SECONDS
        for part in self._source:
            portion.append(part)
            if len(portion) >= PORTION or time.monotonic() >= end:
                break
        return portion

    def _read_all(self) -> None:
        if self._source is not None:
            self._keep([*self._parts, *self._source])
            self._source = None

    def _keep(self, parts: Iterable[Any]) -> None:
        self._parts = [check_part(part, f"jobs[{index}]") for index, part in enumerate(parts)]
        if len(self._parts) > MAX_MEMBERS:
            raise InvalidOption("jobs", f"has {len(self._parts):,} members, the limit is {MAX_MEMBERS:,}")

    def _plan(self, before: JobId | None) -> Plan:
        return Plan(self.id, self._rules, self._callbacks, before)

    def _linked(self, before: JobId | None = None, *, as_list: bool = False) -> Linked:
        """All jobs of the group, each after those that it depends on."""
        self._read_all()
        check_need(self._rules.need, len(self._parts))
        plan = self._plan(before)
        jobs = plan.frame(queue_of(self._parts, self._callbacks), len(self._parts), as_list=as_list)
        for index, part in enumerate(self._parts):
            jobs += plan.member(index, part)
        return Linked(jobs, plan.end)

    async def _unstored(self, connection: object = None) -> list[NewJob]:
        """The jobs that must be stored; raises InvalidOption if the group's name is taken."""
        jobs = list(self.jobs or self._linked().jobs)
        check_no_previous(jobs)
        if not self._rules.name:
            return jobs
        # Members of a finished group may be dropped already: stored again, they would run again.
        is_finished = await self._check_same(connection)
        return jobs[:1] if is_finished else await without_stored(self._enqueuer, jobs, connection)

    async def _store(self, connection: object) -> GroupHandle[T]:
        jobs = await self._unstored(connection)
        found = await self._enqueuer._enqueue_jobs(jobs, [Any] * len(jobs), connection)
        if connection is None and len(jobs) > MAX_AT_ONCE:
            await cancel_if_late(await self._enqueuer._ready(), self.id)
        # The group comes first. An existing one may have been stored since the check, with other members.
        if found[0].existing and self._rules.name:
            await self._check_same(connection)
        return self._handle(found[0]._home, existing=found[0].existing)

    def _handle(self, home: Any, *, existing: bool) -> GroupHandle[T]:
        return group_handle(
            home, self.id, self._callbacks, len(self._parts), existing=existing, returns=self._returns
        )

    @property
    def _returns(self) -> Any:
        """What the members return, if all are of one task."""
        jobs = [part if isinstance(part, TaskJob) else part._last for part in self._parts]
        kinds = {job.type: job.task.definition.returns for job in jobs}
        return next(iter(kinds.values())) if len(kinds) == 1 else Any

    async def _check_same(self, connection: object) -> bool:
        """Whether the group is stored and finished; raises InvalidOption if another one is stored under its name."""
        found = (await self._enqueuer._stored([self.id], connection))[0]
        if found is None:
            return False
        check_group(found, self._rules.name)
        known = found.payload if isinstance(found.payload, dict) else {}
        if known.get("open"):
            raise InvalidOption("id", f"there is a group {self._rules.name!r} to which members are added one by one")
        if (size := known.get("size", len(self._parts))) != len(self._parts):
            sizes = f"with {size:,} members, not {len(self._parts):,}"
            raise InvalidOption("id", f"there is a group {self._rules.name!r} {sizes}")
        return found.finished

    @property
    def _enqueuer(self) -> Enqueuer:
        first = next(iter([*self._parts, *self._callbacks.values()]), None)
        if first is None:
            raise InvalidOption("jobs", "is empty, and there is no callback: nothing would run")
        return first.task._enqueuer if isinstance(first, TaskJob) else first._last.task._enqueuer

    def _portal(self) -> Portal:
        return self._enqueuer._portal()


def made_rules(id_: str | None, options: GroupOptions, size: int | None = None) -> Rules:
    """The checked options of a group."""
    for option in options:
        if option not in GroupOptions.__annotations__:
            raise unknown_option(option, ("then", *GroupOptions.__annotations__), "an option of a group")
    rest, most = options.get("rest", "finish"), options.get("max_running")
    if rest not in ("finish", "cancel"):
        raise InvalidOption("rest", f'must be "finish" or "cancel", not {shown(rest)}')
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_PER_KEY):
        raise InvalidOption("max_running", f"must be 1 to {MAX_PER_KEY:,}, not {shown(most)}")
    return Rules(
        name="" if id_ is None else check_key(id_, "id", MAX_NAME_BYTES),
        need=check_need(options.get("need"), size),
        rest=rest,
        within=_within(options.get("within")),
        max_running=most or 0,
    )


def _within(given: Duration | None) -> Micros:
    found = 0 if given is None else duration(given, "within")
    if given is not None and not 0 < found <= MAX_WITHIN:
        raise InvalidOption("within", f"must be more than 0 s and at most 30 days, not {show_duration(found)}")
    return found


def made_callbacks(then: object, options: GroupOptions) -> Callbacks:
    """The checked callbacks of a group."""
    given = {Role.THEN: then, Role.ON_DEAD: options.get("on_dead"), Role.ALWAYS: options.get("always")}
    return {role: check_callback(each, role) for role, each in given.items() if each is not None}


def new_plan(id_: str | None, then: object, options: GroupOptions) -> Plan:
    """A group without members."""
    rules = made_rules(id_, options)
    return Plan(_id(rules), rules, made_callbacks(then, options))


def _id(rules: Rules) -> JobId:
    return named_group_id(rules.name) if rules.name else new_group_id()


@overload
def group(
    jobs: Iterable[TaskJob[T]], *, id: str | None = None, **options: Unpack[GroupOptions]
) -> Group[Results[T]]: ...
@overload
def group(
    jobs: Iterable[TaskJob[Any] | ChainPart], *, id: str | None = None, **options: Unpack[GroupOptions]
) -> Group[Results[Any]]: ...
@overload
def group(
    jobs: Iterable[TaskJob[Any] | ChainPart],
    *,
    then: Callback[R],
    id: str | None = None,
    **options: Unpack[GroupOptions],
) -> Group[R]: ...
def group(
    jobs: Iterable[Any], *, then: Callback[Any] | None = None, id: str | None = None, **options: Unpack[GroupOptions]
) -> Group[Any]:
    """Jobs that run side by side, and what follows: `group([resize.job(p) for p in paths], then=merge).enqueue()`.

    `then` runs when all members have completed. `on_dead` runs as soon as one is dead or cancelled; then `then` is
    cancelled. `always` runs when all have ended, however. Each runs at most once. A callback is a task, whose first
    parameter, if it has one, gets the results (`Results[T]`; for `then` also `list[T]` of at most 10,000), or a job
    in which `PREVIOUS` stands for them. An empty group runs `then`. A member is a job or a chain. `id` is a name of
    yours: a group with it is stored once, however often it is enqueued. A list is stored as a whole; of any other
    iterable, such as a generator, members run while more of them are read.

    With `need`, a number or a share such as "95%", `then` runs if that many have completed when all have ended, and
    `on_dead` as soon as that is out of reach; `rest="cancel"` then cancels members that have not started. `within` is
    how long the group may take; after that live members are cancelled. `max_running` members run at once, at most.
    """
    rules = made_rules(id, options)
    return Group(_id(rules), rules, made_callbacks(then, options), jobs)
