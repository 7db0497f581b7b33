"""The verbs of an app that enqueue jobs."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from windlass.blobs.offload import Offload
from windlass.client.handle import Handle
from windlass.client.runtime.loops import is_ending
from windlass.client.runtime.offloaded import are_inline, enqueue_large
from windlass.client.runtime.portal import Portal, as_list, blocking
from windlass.client.runtime.process_id import this_process
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.tasks.joint import joint_connection, own_connection
from windlass.client.tasks.options import JobOptions, check_options, job_fields
from windlass.client.tasks.previous import check_no_previous
from windlass.client.tasks.registrar import Registrar
from windlass.client.tasks.registry import Registry
from windlass.client.tasks.task import Task, TaskJob
from windlass.client.verbs.jobs import Jobs
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.job import Enqueued, Job, NewJob
from windlass.core.names import check_name
from windlass.errors import EnqueueFailed, EnqueueUnknown, InvalidOption, StoreUnavailable, StoreUnusable
from windlass.observe.tracing import with_trace
from windlass.store.contract import Store

T = TypeVar("T")
AnyTask = Task[Any, Any, Any]


def _has_connection(_: object, what: object = None, *__: object, connection: object = None, **___: object) -> bool:
    first = what[0] if isinstance(what, list) and what else what
    return connection is not None or own_connection(first) is not None


def _check_no_arguments(options: Mapping[str, Any], task: AnyTask) -> None:
    for name in options:
        if name in task.definition.signature.names and name not in JobOptions.__annotations__:
            raise InvalidOption(name, f"is an argument: give it in the payload, {{{name!r}: ...}}")


class Producer(Registrar):
    """Enqueues jobs of registered tasks, and by name."""

    registry: Registry
    jobs: Jobs
    _store_handle: StoreHandle
    _tracing: Callable[[Sequence[NewJob], str], AbstractContextManager[None]] | None = None
    """Makes a span of an operation on jobs, `send` or `create`; set by `windlass.contrib.otel`."""
    _trace_store: Callable[[Store], Store] | None = None
    """Makes spans of a runner's claims and settlements; set by `windlass.contrib.otel` on request."""

    @property
    @abstractmethod
    def payload_limit(self) -> int: ...

    @abstractmethod
    def offload(self) -> Offload | None: ...

    @abstractmethod
    def _portal(self) -> Portal: ...

    @abstractmethod
    async def _ready(self) -> Store: ...

    async def _stored(self, ids: Sequence[JobId], connection: object = None) -> list[Job | None]:
        """Read jobs, inside the caller's transaction if a connection is given."""
        if connection is None:
            return list(await (await self._ready()).operator.get(ids))
        return list(await self._store_handle.connect().jobs.get_inside(connection, ids))

    @property
    def tasks(self) -> Mapping[str, AnyTask]:
        """Its tasks by type, also those of the included task sets."""
        return MappingProxyType(self._tasks)

    async def aenqueue(
        self, type: str | AnyTask, payload: Mapping[str, Any] | None = None, /, **options: Unpack[JobOptions]
    ) -> Handle[Any]:
        """Enqueue a job by name: `app.enqueue("mail.welcome", {"user_id": 42}, delay="5m")`.

        The options are those of `using(...)`. If this app has the task, its options hold and the arguments are
        checked. Else they are stored unchecked, for a worker whose app has it: a misspelt type is no error here, and
        its job waits, `blocked`, until some worker knows it.
        """
        task = type if isinstance(type, Task) else self._task(type)
        arguments = {} if payload is None else payload
        if task is not None:
            _check_no_arguments(options, task)
            return await task.using(**options)._job_of(arguments).aenqueue()
        fields = check_options(options)
        text = self.registry.check(check_name(type, "type"), arguments, self.payload_limit)
        fresh = "" if "id" in fields else this_process()
        job = NewJob(type=str(type), payload=text, fresh=fresh, **job_fields({"id": new_id(), **fields}))
        return (await self._enqueue_jobs([job], [Any], options.get("connection")))[0]

    enqueue = blocking(aenqueue, begins_here=True, here=_has_connection)

    def _task(self, type_: str) -> AnyTask | None:
        known = self.registry.get(type_) if type_ in self.registry else None
        return None if known is None else self._tasks[known.type]

    @overload
    async def aenqueue_many(self, jobs: Iterable[TaskJob[T]], *, connection: object = None) -> list[Handle[T]]: ...
    @overload
    async def aenqueue_many(self, jobs: Iterable[NewJob], *, connection: object = None) -> list[Handle[Any]]: ...
    async def aenqueue_many(self, jobs: Iterable[NewJob], *, connection: object = None) -> list[Handle[Any]]:
        """Enqueue many jobs (`task.job(...)`), all or none.

        They may come from any iterable, also a generator: it is read once, completely, before anything is stored.
        With a `connection` to the same database, or if all were made by `task.using(connection=...)`, they are part
        of its transaction: your commit decides.
        """
        jobs = as_list(jobs, "jobs")
        wrong = [i for i, job in enumerate(jobs) if not isinstance(job, NewJob)]
        if wrong:
            raise InvalidOption(f"jobs[{wrong[0]}]", "is not a job; make it with task.job(...)")
        returns = {type_: self._returns(type_) for type_ in {job.type for job in jobs}}
        return await self._enqueue_jobs(jobs, [returns[job.type] for job in jobs], connection)

    if TYPE_CHECKING:

        @overload
        def enqueue_many(self, jobs: Iterable[TaskJob[T]], *, connection: object = None) -> list[Handle[T]]: ...
        @overload
        def enqueue_many(self, jobs: Iterable[NewJob], *, connection: object = None) -> list[Handle[Any]]: ...
        def enqueue_many(self, jobs: Iterable[NewJob], *, connection: object = None) -> list[Handle[Any]]: ...
    else:
        enqueue_many = blocking(aenqueue_many, here=_has_connection, iterable="jobs")

    def _returns(self, type_: str) -> Any:
        return self.registry.get(type_).returns if type_ in self.registry else Any

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]:
        check_no_previous(jobs)
        connection = joint_connection(jobs, connection)
        if self._tracing is None:
            return await self._enqueue_carried(jobs, returns, connection)
        with self._tracing(jobs, "send"):
            return await self._enqueue_carried(jobs, returns, connection)

    async def _enqueue_carried(self, jobs: list[NewJob], returns: list[Any], connection: object) -> list[Handle[Any]]:
        jobs = self._store_handle.mark_repeated(with_trace(jobs))
        try:
            if are_inline(jobs):
                answers = await self._enqueue(jobs, connection)
            else:
                enqueue = partial(self._enqueue, connection=connection)
                answers = await enqueue_large(self.offload(), jobs, self.payload_limit, enqueue)
        except asyncio.CancelledError:
            if not is_ending(asyncio.get_running_loop()):
                raise  # the caller cancelled it
            raise EnqueueUnknown([job.id for job in jobs], "the app was closed during the call") from None
        return [self._handle(answer.id, answer.existing, kind) for answer, kind in zip(answers, returns, strict=True)]

    def _traced(self, store: Store) -> Store:
        """The store of a runner, wrapped for spans if `windlass.contrib.otel` asked for them."""
        return store if self._trace_store is None else self._trace_store(store)

    def _with_creation(self, job: NewJob) -> NewJob:
        """The job of a schedule, with the trace in which the schedule is set."""
        if self._tracing is None:
            return with_trace([job])[0]
        with self._tracing([job], "create"):
            return with_trace([job])[0]

    def _handle(self, id_: str, existing: bool, returns: Any) -> Handle[Any]:
        return Handle(self, id_, existing, returns)

    async def _enqueue(self, jobs: Sequence[NewJob], connection: object = None) -> list[Enqueued]:
        store = None
        try:
            if connection is None:
                store = await self._ready()
                return await store.jobs.enqueue(jobs)
            # Whether the caller commits is unknown here: declarations are sent again until they are written.
            declared = {} if self._store_handle.written == self._declared.version else dict(self._declared.queues)
            return await self._store_handle.connect().jobs.enqueue_inside(connection, jobs, declared)
        except StoreUnavailable as error:
            if error.maybe_done and store is not None:
                raise EnqueueUnknown([job.id for job in jobs], str(error)) from error
            if isinstance(error, StoreUnusable):
                raise
            raise EnqueueFailed(f"nothing was stored: {error}") from error
