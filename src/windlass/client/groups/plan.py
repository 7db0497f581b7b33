"""What a group is stored as: its own job, its callbacks with the jobs that decide about them, and its members."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, get_origin, runtime_checkable

import msgspec

from windlass.client.groups.results import Results
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.task import Task, TaskJob
from windlass.core.codec import encode
from windlass.core.groups.ids import (
    GROUP_TYPE,
    MAX_MEMBERS,
    MEMBER_TYPE,
    Role,
    callback_id,
    link_id,
    member_id,
    watcher_id,
)
from windlass.core.groups.need import Need
from windlass.core.groups.rules import MIN_POLL, GroupPayload
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import DEFAULT_QUEUE, DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, NewJob
from windlass.core.moments import SECOND, Micros
from windlass.errors import InvalidOption

MAX_IN_LIST = 10_000
"""Members of a group whose callback takes a list."""
Callbacks = Mapping[Role, TaskJob[Any]]


class Linked(NamedTuple):
    """The jobs of a chain or a group, and the job that has its result."""

    jobs: list[NewJob]
    end: JobId


class ChainContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a chain in a group: the group's id is its flow, and its ids follow from the seed."""

    seed: str
    flow: str
    fresh: str
    before: JobId | None = None


@runtime_checkable
class ChainPart(Protocol):
    """A chain, as a member of a group."""

    def _linked(self, context: ChainContext) -> Linked: ...

    @property
    def _last(self) -> TaskJob[Any]: ...


Part = TaskJob[Any] | ChainPart
"""A member: a job, or a chain of them."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say how a group ends."""

    name: str = ""
    need: Need = None
    rest: str = "finish"
    within: Micros = 0
    max_running: int = 0


class Plan:
    """The jobs of one group."""

    def __init__(self, id_: JobId, rules: Rules, callbacks: Callbacks, before: JobId | None = None) -> None:
        """`before` is the link of a chain after which its members start."""
        self.id, self.rules, self.callbacks = id_, rules, callbacks
        self.fresh = "" if rules.name else this_process()
        self._before = before
        self._queue: str | None = None
        """The queue of all members, if they have to be in one."""

    @property
    def end(self) -> JobId:
        """The job whose result is the group's."""
        return callback_id(self.id, Role.THEN) if Role.THEN in self.callbacks else self.id

    def frame(self, queue: str, size: int | None, *, as_list: bool = False) -> list[NewJob]:
        """All jobs but the members; without a size the group is open. `queue` is used for jobs without a callback."""
        roles = [role for role in Role if role is Role.THEN or role in self.callbacks]
        found = [self._watcher(role, queue, size, as_list=as_list) for role in roles]
        return found + [self._dependent(role, job) for role, job in self.callbacks.items()]

    def member(self, index: int, part: Part) -> list[NewJob]:
        """A member, and the jobs that it stands for, if it does."""
        if index >= MAX_MEMBERS:
            raise InvalidOption("jobs", f"has more than {MAX_MEMBERS:,} members, which is the limit")
        id_ = member_id(self.id, index)
        if isinstance(part, TaskJob) and (part.idempotency_key is None or part.on_conflict is OnConflict.RAISE):
            return self._limited(index, [self._after(part, id=id_, parent=self.id)])
        seed = f"{self.id}/{index}"
        if isinstance(part, TaskJob):
            last, behind = part, Linked([self._after(part, id=link_id(seed, 0))], link_id(seed, 0))
        else:
            context = ChainContext(seed=seed, flow=self.id, fresh=self.fresh, before=self._before)
            last, behind = part._last, part._linked(context)
        return [*self._limited(index, behind.jobs), self._representing(id_, last, behind.end)]

    def _after(self, job: TaskJob[Any], **fields: Any) -> NewJob:
        """Make a job start when the link before the group has completed."""
        return after(job, self._before, flow=self.id, fresh=self.fresh, **fields)

    def _limited(self, index: int, jobs: list[NewJob]) -> list[NewJob]:
        """Give the jobs of a member the concurrency key of the group, if `max_running` is set."""
        if not self.rules.max_running:
            return jobs
        for job in jobs:
            if job.concurrency_key is not None:
                raise InvalidOption(f"jobs[{index}].concurrency_key", "cannot be given together with max_running")
            self._queue = self._queue or job.queue
            if job.queue != self._queue:
                problem = f"must be {self._queue!r}, as of the first member: max_running holds in one queue"
                raise InvalidOption(f"jobs[{index}].queue", problem)
        fields = {"concurrency_key": f"group:{self.id}", "key_limit": self.rules.max_running}
        return [msgspec.structs.replace(job, **fields) for job in jobs]

    def _representing(self, id_: JobId, last: TaskJob[Any], end: JobId) -> NewJob:
        """A member that completes with the result of another job."""
        return NewJob(
            id=id_,
            type=MEMBER_TYPE,
            payload="{}",
            queue=last.queue,
            priority=last.priority,
            max_attempts=MAX_ATTEMPTS,
            timeout=DEFAULT_TIMEOUT,
            parent=self.id,
            parents=(end,),
            result_params=(("value", end),),
            flow=self.id,
            fresh=self.fresh,
        )

    def _watcher(self, role: Role, queue: str, size: int | None, *, as_list: bool) -> NewJob:
        """The group itself, or the job that decides about another callback, in the callback's queue."""
        if role is Role.THEN and role in self.callbacks:
            as_list = kind_of(self.callbacks[role]) is list
        if as_list and size is not None and size > MAX_IN_LIST:
            problem = f"takes a list, for at most {MAX_IN_LIST:,} members: let it take Results[T]"
            raise InvalidOption("then", problem)
        rules = self.rules
        payload = GroupPayload(
            self.id,
            size or 0,
            int(role),
            as_list and role is Role.THEN,
            rules.name,
            rules.need,
            rules.rest,
            rules.within,
            rules.max_running,
            size is None,
        )
        parents = (self._before,) if self._before and role is Role.THEN else ()
        return NewJob(
            id=watcher_id(self.id, role),
            type=GROUP_TYPE,
            payload=encode(msgspec.to_builtins(payload), "payload"),
            queue=self.callbacks[role].queue if role in self.callbacks else queue,
            priority=MAX_PRIORITY,
            delay=0 if size == 0 else int(MIN_POLL * SECOND),
            max_attempts=MAX_ATTEMPTS,
            timeout=DEFAULT_TIMEOUT,
            parent=parents[0] if parents else None,
            parents=parents,
            flow=self.id,
            fresh=self.fresh,
        )

    def _dependent(self, role: Role, job: TaskJob[Any]) -> NewJob:
        watcher = watcher_id(self.id, role)
        return after(
            job,
            watcher,
            id=callback_id(self.id, role),
            parent=watcher,
            flow=self.id,
            fresh=self.fresh,
            **({} if job.idempotency_key is None else {"on_conflict": OnConflict.RAISE}),
        )


def after(job: TaskJob[Any], before: JobId | None, **fields: Any) -> NewJob:
    """The job with another one as its parent, whose result it may take."""
    if before is None:
        return msgspec.structs.replace(job, **fields)
    takes = tuple((name, before) for name, _ in job.result_params)
    return msgspec.structs.replace(job, parents=(before,), result_params=takes, **fields)


def check_part(part: object, field: str) -> Part:
    """Refuse ids and parents on a member, which the group sets."""
    if isinstance(part, TaskJob):
        return check_own(part, field)
    if isinstance(part, ChainPart):
        return part
    raise InvalidOption(field, f"must be a job made with task.job(...), or a chain, not {type(part).__name__}")


def check_callback(given: object, role: Role) -> TaskJob[Any]:
    """Check that a callback is a task or a job that takes the results, or nothing."""
    field = role.name.lower()
    job = given
    if isinstance(given, Task):
        job = given.link() if given.definition.signature.first is not None else given.job()
    if not isinstance(job, TaskJob):
        raise InvalidOption(field, f"must be a task, or a job made with task.job(...), not {type(given).__name__}")
    kind = kind_of(job)
    if kind not in (None, Results, list) or (kind is list and role is not Role.THEN):
        either = "Results[T] or list[T]" if role is Role.THEN else "Results[T]"
        parameter = job.result_params[0][0]
        raise InvalidOption(field, f"{job.type} must take the results as {parameter}: {either}")
    return check_own(job, field)


def check_own(job: TaskJob[Any], field: str) -> TaskJob[Any]:
    """Refuse ids and parents on a callback, which the group sets."""
    if not job.fresh:
        raise InvalidOption(f"{field}.id", "cannot be given: ids follow from the id of the group")
    if job.parent is not None:
        raise InvalidOption(f"{field}.parent", "cannot be given: that is the group")
    if job.on_conflict is OnConflict.REPLACE:
        raise InvalidOption(f"{field}.on_conflict", "cannot be replace in a group: a job that runs stays")
    return job


def kind_of(job: TaskJob[Any]) -> Any:
    """How a job takes the results: as Results, as a list, or not at all (None)."""
    hints: Sequence[Any] = [job.task.definition.signature.annotation(name) for name, _ in job.result_params]
    if not hints:
        return None
    kinds = {list if hint is Any else get_origin(hint) or hint for hint in hints}
    return kinds.pop() if len(kinds) == 1 else object


def queue_of(parts: Sequence[Part], callbacks: Callbacks) -> str:
    """The queue of a group without `then`: that of its first member, or else of its first callback."""
    first = parts[0] if parts else next(iter(callbacks.values()), None)
    if first is None:
        return DEFAULT_QUEUE
    return first.queue if isinstance(first, TaskJob) else first._last.queue
