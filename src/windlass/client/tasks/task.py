"""A task: a function that can be called now, or enqueued for a worker."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack

import msgspec

from windlass.client.elsewhere import TASK, no_attribute
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.context import Context
from windlass.client.tasks.hooks import location
from windlass.client.tasks.keys import KeyTemplate, check_no_template
from windlass.client.tasks.link import Home
from windlass.client.tasks.options import JobOptions, check_options, job_fields
from windlass.client.tasks.previous import PREVIOUS, Placeholder, take_placeholders
from windlass.client.tasks.signature import Signature
from windlass.core.codec import INLINE_LIMIT
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.job import Job, NewJob, ResultParam
from windlass.core.jobs.outcome import Policy
from windlass.core.jobs.retry import RetryPolicy
from windlass.errors import InvalidInput, InvalidPayload
from windlass.store.contract import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Errors = tuple[type[BaseException], ...]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """The fixed properties of a registered task."""

    type: str
    aliases: tuple[str, ...] = ()
    """Types under which older code stored jobs of this task; new jobs never have them."""
    function: Callable[..., Any]
    handler: Callable[..., Any]
    """What a worker calls: the function inside the app's middleware."""
    signature: Signature
    defaults: dict[str, Any]
    """Fields of a NewJob that the task sets: its queue, priority, budget."""
    key: KeyTemplate | None = None
    """The template of a job's concurrency key, unless the job has its own."""
    retry: RetryPolicy | None
    dead_on: Errors
    returns: Any
    is_async: bool
    in_process: bool = False
    """Whether it runs in a process of its own, which can be killed without harm to the worker."""
    home: Home | None = None
    """The app that it is registered in; None before its task set is included."""

    def policy(self, otherwise: RetryPolicy) -> Policy:
        """The retry policy of this task; `otherwise` is the queue's policy."""
        return Policy(self.retry or otherwise, self.dead_on)

    def fields(self, options: Mapping[str, Any], payload: str, later: Collection[ResultParam] = ()) -> dict[str, Any]:
        """The fields of a NewJob for a call: its options, then the task's; checked together.

        The arguments `later` are set when the parent has completed.
        """
        fields = {**self.defaults, **options}
        if self.key is not None and "concurrency_key" not in fields:
            self.key.check_known([name for name, _ in later])
            fields["concurrency_key"] = self.key.render(payload)
        return job_fields(fields) if options else fields

    @property
    def location(self) -> str:
        """Where the function is defined, for error messages."""
        return location(self.function)


class Enqueuer(Protocol):
    """Enqueues the jobs of a task."""

    @property
    def payload_limit(self) -> int: ...

    async def _ready(self) -> Store: ...

    async def _stored(self, ids: Sequence[JobId], connection: object = None) -> list[Job | None]: ...

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...

    def _portal(self) -> Portal: ...


class TaskJob(NewJob, Generic[T_co], frozen=True, kw_only=True, gc=False):
    """A job of a task, made by `task.job(...)` and not enqueued yet.

    Pickled or stored it becomes a plain job.
    """

    task: "Task[Any, Any, T_co]"

    async def aenqueue(self) -> Handle[T_co]:
        """Enqueue it. Its id is fixed: doing so twice adds no second job."""
        task = self.task
        return (await task._enqueuer._enqueue_jobs([self], [task.definition.returns], task._connection))[0]

    enqueue = blocking(aenqueue, begins_here=True, here=lambda job: job._connection is not None)

    @property
    def _connection(self) -> object:
        return self.task._connection

    def _portal(self) -> Portal:
        return self.task._portal()

    def plain(self, **changed: Any) -> NewJob:
        """The plain record for the store, with some fields changed."""
        return NewJob(**{**{name: getattr(self, name) for name in NewJob.__struct_fields__}, **changed})

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain, (msgspec.structs.asdict(self.plain()),)


def _plain(fields: dict[str, Any]) -> NewJob:
    return NewJob(**fields)


class Task(Generic[P, R, T]):
    """Calling it runs the plain function; `enqueue` and `aenqueue` enqueue a job, with the same signature."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, enqueuer: Enqueuer, definition: Definition) -> None:
        self._enqueuer = enqueuer
        self._definition = definition
        self._options: dict[str, Any] = {}
        self._connection: object = None
        self.__name__ = definition.type
        update_wrapper(self, definition.function, updated=())

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._definition.function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"Task({self.type!r})"

    @property
    def type(self) -> str:
        """The stable name under which workers know it."""
        return self._definition.type

    @property
    def definition(self) -> Definition:
        """What a worker needs to run it."""
        return self._definition

    def using(self, **options: Unpack[JobOptions]) -> Self:
        """The same task with options for its jobs."""
        check_no_template(options.get("concurrency_key"), self._definition.signature.names)
        task = object.__new__(type(self))
        vars(task).update(vars(self))
        task._options = {**self._options, **check_options(options)}
        task._connection = options.get("connection", self._connection)
        return task

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskJob[T]:
        """A complete, checked job that is not enqueued; `PREVIOUS` may stand for arguments in a chain."""
        return self._made(self._definition.signature.bind(args, kwargs))

    def _job_of(self, payload: object) -> TaskJob[T]:
        """A job of arguments that are given by name, as JSON."""
        if not isinstance(payload, Mapping):
            raise InvalidPayload("payload", f"must be a mapping of arguments, not {type(payload).__name__}")
        return self._made(self._definition.signature.bind((), payload))

    def link(self) -> TaskJob[T]:
        """The job of a bare task in a chain: its first parameter gets the result before it."""
        signature = self._definition.signature
        if signature.first is None:
            raise InvalidPayload("PREVIOUS", f"{self.type} has no parameter for it: give {self.type}.job() instead")
        return self._made(signature.bind((), {signature.first: PREVIOUS}))

    def _made(self, given: dict[str, Any]) -> TaskJob[T]:
        definition, options = self._definition, self._options
        later: tuple[ResultParam, ...] = ()
        for value in given.values():
            if isinstance(value, Placeholder):
                later = take_placeholders(given)
                break
        try:
            payload = definition.signature.encode_bound(given)
        except InvalidInput:
            # Read late: the limit may come from the settings file, which making a job at import must not read.
            if (limit := self._enqueuer.payload_limit) == INLINE_LIMIT:
                raise
            payload = definition.signature.encode_bound(given, limit)
        fields = definition.fields(options, payload, later)
        if not fields:  # most calls; without ** it costs half
            return TaskJob(
                id=new_id(),
                type=definition.type,
                payload=payload,
                fresh=this_process(),
                result_params=later,
                task=self,
            )
        if "id" not in fields:
            fields["id"], fields["fresh"] = new_id(), this_process()
        return TaskJob(type=definition.type, payload=payload, result_params=later, task=self, **fields)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Enqueue a job. When this returns, the job is stored; with `using(connection=...)`, when you commit."""
        job = self.job(*args, **kwargs)
        handles = await self._enqueuer._enqueue_jobs([job], [self._definition.returns], self._connection)
        return handles[0]

    enqueue = blocking(aenqueue, begins_here=True, here=lambda task, *_, **__: task._connection is not None)

    def _portal(self) -> Portal:
        return self._enqueuer._portal()

    if not TYPE_CHECKING:  # a type checker would assume that every name exists

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, TASK)


class ContextTask(Task[P, R, T]):
    """A task whose first parameter is its Context: a plain call passes it, `enqueue` and `job` omit it."""

    if TYPE_CHECKING:

        def __call__(self, ctx: Context[Any], /, *args: P.args, **kwargs: P.kwargs) -> R: ...  # type: ignore[override]


def task_of(enqueuer: Enqueuer, definition: Definition) -> Task[Any, Any, Any]:
    """The task for a definition."""
    kind = Task if definition.signature.context is None else ContextTask
    return kind(enqueuer, definition)
