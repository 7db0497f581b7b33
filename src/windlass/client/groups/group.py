"""group(...): many jobs, enqueued together, and callbacks that run when they have ended."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, cast, get_origin, overload

import msgspec

from windlass.client.groups.results import Results
from windlass.client.handle import CANCELLED, Handle
from windlass.client.runtime.portal import Portal, as_list, blocking
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.task import Enqueuer, Task, TaskJob
from windlass.core.codec import encode
from windlass.core.groups.ids import (
    GROUP_TYPE,
    MAX_MEMBERS,
    Role,
    callback_id,
    member_id,
    named_group_id,
    new_group_id,
    watcher_id,
)
from windlass.core.groups.rules import MIN_POLL, GroupPayload
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, Job, NewJob
from windlass.core.moments import SECOND, Duration
from windlass.core.names import check_key
from windlass.errors import InvalidOption

T = TypeVar("T")
R = TypeVar("R")

Callback = Task[Any, Any, R] | TaskJob[R]
MAX_IN_LIST = 10_000
"""Members of a group whose callback takes a list."""
MAX_NAME_BYTES = 200


class GroupHandle(Handle[T], eq=False):
    """An enqueued group; its result is that of `then`, or without one the results of its members."""

    size: int = 0
    then: Handle[Any] | None = None
    on_dead: Handle[Any] | None = None
    always: Handle[Any] | None = None

    def __repr__(self) -> str:
        return f"GroupHandle({self.id!r}, {self.size} members)"

    def member(self, index: int) -> Handle[Any]:
        """The member with this index, from 0."""
        if not 0 <= index < self.size:
            raise IndexError(f"the group has {self.size} members")
        return Handle(self._home, member_id(self.id, index))

    async def aresult(self, timeout: Duration | None = None) -> T:
        """Wait for the result of `then`, as `Handle.aresult`; without one, until all members have completed."""
        if self.then is not None:
            found: T = await self.then.aresult(timeout)
            return found
        await super().aresult(timeout)
        return cast("T", Results(self._home, self.id, self.size, self._returns))

    async def acancel(self, reason: str = CANCELLED) -> Job:
        """Cancel the group and its members, like `app.flows.cancel`; returns the group's job."""
        home: Any = self._home
        await home.flows.acancel(self.id, reason)
        return await self.ajob()

    result = blocking(aresult, waits=True)
    cancel = blocking(acancel)


class Group(Generic[T]):
    """Members and callbacks, checked but not enqueued. Their ids are fixed: enqueueing it twice adds none."""

    def __init__(self, plan: "_Plan") -> None:
        self._plan = plan
        self.id = plan.id
        self.jobs: tuple[NewJob, ...] = tuple(plan.jobs())

    def __repr__(self) -> str:
        return f"group({len(self._plan.members)} jobs, id={self._plan.name or self.id!r})"

    async def aenqueue(self, *, connection: object = None) -> GroupHandle[T]:
        """Enqueue the group, its members and its callbacks, or nothing.

        With a `connection` to the same database they are part of its transaction: your commit decides. A group with
        the same `id` is not stored again; one with another number of members is refused.
        """
        plan = self._plan
        if plan.name and connection is None:
            await self._check_same()
        callbacks = {callback_id(self.id, role): job.task.definition.returns for role, job in plan.callbacks.items()}
        returns = [callbacks.get(job.id, Any) for job in self.jobs]
        handles = {each.id: each for each in await plan.enqueuer._enqueue_jobs(list(self.jobs), returns, connection)}
        group = handles[self.id]
        roles = [handles.get(callback_id(self.id, role)) for role in Role]
        return GroupHandle(group._home, self.id, group.existing, plan.returns, len(plan.members), *roles)

    enqueue = blocking(aenqueue, here=lambda *_, connection=None, **__: connection is not None)

    async def _check_same(self) -> None:
        found = (await (await self._plan.enqueuer._ready()).operator.get([self.id]))[0]
        size = found.payload.get("size") if found is not None and isinstance(found.payload, dict) else None
        if size is not None and size != len(self._plan.members):
            problem = f"there is a group {self._plan.name!r} with {size:,} members, not {len(self._plan.members):,}"
            raise InvalidOption("id", problem)

    def _portal(self) -> Portal:
        return self._plan.enqueuer._portal()


@overload
def group(
    jobs: Iterable[TaskJob[T]],
    *,
    on_dead: Callback[Any] | None = None,
    always: Callback[Any] | None = None,
    id: str | None = None,
) -> Group[Results[T]]: ...
@overload
def group(
    jobs: Iterable[TaskJob[Any]],
    *,
    then: Callback[R],
    on_dead: Callback[Any] | None = None,
    always: Callback[Any] | None = None,
    id: str | None = None,
) -> Group[R]: ...
def group(
    jobs: Iterable[TaskJob[Any]],
    *,
    then: Callback[Any] | None = None,
    on_dead: Callback[Any] | None = None,
    always: Callback[Any] | None = None,
    id: str | None = None,
) -> Group[Any]:
    """Jobs that run side by side, and what follows: `group([resize.job(p) for p in paths], then=merge).enqueue()`.

    `then` runs when all members have completed. `on_dead` runs as soon as one is dead or cancelled; then `then` is
    cancelled. `always` runs when all have ended, however. Each runs at most once. A callback is a task, whose first
    parameter, if it has one, gets the results (`Results[T]`; for `then` also `list[T]` of at most 10,000), or a job
    in which `PREVIOUS` stands for them. An empty group runs `then`. `id` is a name of yours: a group with it is
    stored once, however often it is enqueued. The jobs are read completely before anything is stored.
    """
    members = [_member(job, index) for index, job in enumerate(as_list(jobs, "jobs"))]
    if len(members) > MAX_MEMBERS:
        raise InvalidOption("jobs", f"has {len(members):,} members, the limit is {MAX_MEMBERS:,}")
    name = "" if id is None else check_key(id, "id", MAX_NAME_BYTES)
    given = {Role.THEN: then, Role.ON_DEAD: on_dead, Role.ALWAYS: always}
    callbacks = {role: _callback(each, role) for role, each in given.items() if each is not None}
    if not members and not callbacks:
        raise InvalidOption("jobs", "is empty, and there is no callback: nothing would run")
    return Group(_Plan(named_group_id(name) if name else new_group_id(), name, members, callbacks))


class _Plan(msgspec.Struct, frozen=True):
    """The parts of a group."""

    id: JobId
    name: str
    members: list[TaskJob[Any]]
    callbacks: dict[Role, TaskJob[Any]]

    @property
    def enqueuer(self) -> Enqueuer:
        return next(iter([*self.members, *self.callbacks.values()])).task._enqueuer

    @property
    def returns(self) -> Any:
        """What the members return, if all do the same."""
        kinds = {job.type: job.task.definition.returns for job in self.members}
        return next(iter(kinds.values())) if len(kinds) == 1 else Any

    def jobs(self) -> list[NewJob]:
        """All of them; each comes after those that it depends on."""
        fresh = "" if self.name else this_process()
        found = [self._watcher(role, fresh) for role in Role if role is Role.THEN or role in self.callbacks]
        found += [self._dependent(role, job, fresh) for role, job in self.callbacks.items()]
        for index, job in enumerate(self.members):
            id_ = member_id(self.id, index)
            found.append(job.plain(id=id_, parent=self.id, flow=self.id, fresh=fresh, **_strict_key(job)))
        return found

    def _watcher(self, role: Role, fresh: str) -> NewJob:
        """The group itself, or the job that decides about another callback; in the callback's queue."""
        first = self.callbacks.get(role) or next(iter([*self.members, *self.callbacks.values()]))
        as_list = role is Role.THEN and role in self.callbacks and _kind(self.callbacks[role]) is list
        if as_list and len(self.members) > MAX_IN_LIST:
            problem = f"takes a list, for at most {MAX_IN_LIST:,} members: let it take Results[T]"
            raise InvalidOption("then", problem)
        payload = GroupPayload(self.id, len(self.members), int(role), as_list, self.name)
        return NewJob(
            id=watcher_id(self.id, role),
            type=GROUP_TYPE,
            payload=encode(msgspec.structs.asdict(payload), "payload"),
            queue=first.queue,
            priority=MAX_PRIORITY,
            delay=int(MIN_POLL * SECOND) if self.members else 0,
            max_attempts=MAX_ATTEMPTS,
            timeout=DEFAULT_TIMEOUT,
            flow=self.id,
            fresh=fresh,
        )

    def _dependent(self, role: Role, job: TaskJob[Any], fresh: str) -> NewJob:
        watcher = watcher_id(self.id, role)
        return job.plain(
            id=callback_id(self.id, role),
            parent=watcher,
            parents=(watcher,),
            result_params=tuple((name, watcher) for name, _ in job.result_params),
            flow=self.id,
            fresh=fresh,
            **_strict_key(job),
        )


def _strict_key(job: NewJob) -> dict[str, Any]:
    """A key that another job has is an error: its job would not be a part of the group."""
    return {} if job.idempotency_key is None else {"on_conflict": OnConflict.RAISE}


def _member(job: object, index: int) -> TaskJob[Any]:
    field = f"jobs[{index}]"
    if not isinstance(job, TaskJob):
        raise InvalidOption(field, f"must be a job made with task.job(...), not {type(job).__name__}")
    if job.result_params:
        raise InvalidOption(f"{field}.{job.result_params[0][0]}", "is PREVIOUS: nothing comes before a member")
    return _check_own(job, field)


def _callback(given: object, role: Role) -> TaskJob[Any]:
    field = role.name.lower()
    job = given
    if isinstance(given, Task):
        job = given.link() if given.definition.signature.first is not None else given.job()
    if not isinstance(job, TaskJob):
        raise InvalidOption(field, f"must be a task, or a job made with task.job(...), not {type(given).__name__}")
    kind = _kind(job)
    if kind not in (None, Results, list) or (kind is list and role is not Role.THEN):
        either = "Results[T] or list[T]" if role is Role.THEN else "Results[T]"
        parameter = job.result_params[0][0]
        raise InvalidOption(field, f"{job.type} must take the results as {parameter}: {either}")
    return _check_own(job, field)


def _check_own(job: TaskJob[Any], field: str) -> TaskJob[Any]:
    """The group decides about ids and parents."""
    if not job.fresh:
        raise InvalidOption(f"{field}.id", "cannot be given: ids follow from the id of the group")
    if job.parent is not None:
        raise InvalidOption(f"{field}.parent", "cannot be given: that is the group")
    if job.on_conflict is OnConflict.REPLACE:
        raise InvalidOption(f"{field}.on_conflict", "cannot be replace in a group: a job that runs stays")
    return job


def _kind(job: TaskJob[Any]) -> Any:
    """How a callback takes the results: as Results, as a list, or not at all (None)."""
    hints: Sequence[Any] = [job.task.definition.signature.annotation(name) for name, _ in job.result_params]
    if not hints:
        return None
    kinds = {list if hint is Any else get_origin(hint) or hint for hint in hints}
    return kinds.pop() if len(kinds) == 1 else object
