"""The handle on an enqueued job, and its result."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.elsewhere import HANDLE, no_attribute
from windlass.client.runtime.offloaded import value_of
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.runtime.result_waiter import Wait
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.verbs.links import cause_of, front_of
from windlass.core.codec import decode_object, unstorable_problem
from windlass.core.jobs.dependencies import describe_cause
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.reference import Reference
from windlass.core.status import Status
from windlass.errors import JobCancelled, JobDead, ResultUnavailable, StoreUnavailable
from windlass.store.contract import Store

T = TypeVar("T")
CANCELLED = "cancelled by an operator"
NEAR = 100
"""After a timeout, the job at which a chain is held up is searched this many links back."""


class JobVerbs(Protocol):
    """What a handle needs of `app.jobs`."""

    async def aget(self, id: str) -> Job: ...

    async def acancel(self, id: str, reason: str = ...) -> Job: ...


class Home(Protocol):
    """What a handle needs of its app."""

    @property
    def jobs(self) -> JobVerbs: ...

    async def _ready(self) -> Store: ...

    def offload(self) -> Offload | None: ...

    @property
    def _store_handle(self) -> StoreHandle: ...

    def _portal(self) -> Portal: ...


class Handle(msgspec.Struct, Generic[T], eq=False, gc=False):
    """An enqueued job; `existing` if it existed before. Handles on the same job are equal.

    Every verb that takes an id takes a handle too: `app.jobs.retry(handle)`, `using(parent=handle)`. A batch may
    make a hundred thousand of them, so they form no cycle and the garbage collector does not track them.
    """

    _home: Home
    id: str
    existing: bool = False
    _returns: Any = Any

    def __repr__(self) -> str:
        return f"Handle({self.id!r}{', existing=True' if self.existing else ''})"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    async def ajob(self) -> Job:
        """The job as it is now, like `app.jobs.get`."""
        return await self._home.jobs.aget(self.id)

    async def astatus(self) -> Status:
        """The status now."""
        return (await self.ajob()).status

    async def acancel(self, reason: str = CANCELLED) -> Job:
        """Cancel the job if it waits, or ask it to stop if it runs, like `app.jobs.cancel`."""
        return await self._home.jobs.acancel(self.id, reason)

    job = blocking(ajob)
    cancel = blocking(acancel)
    _status = blocking(astatus)

    @property
    def status(self) -> Status:
        """The status now, read from the store; in a coroutine use `await handle.astatus()`."""
        return self._status()

    async def aresult(self, timeout: Duration | None = None) -> T:
        """Wait until the job has ended, through all its retries, and return its result.

        Waits through outages of the store. Raises JobDead, JobCancelled, JobNotFound (it is not kept; `outcome` tells
        whether it completed), ResultUnavailable (it completed, and its result could not be kept), BlobUnavailable,
        TimeoutError, or StoreUnavailable.
        """
        seconds = None if timeout is None else duration(timeout, "timeout") / SECOND
        store = await self._home._ready()
        waiter = self._home._store_handle.result_waiter(store)
        with waiter.waiting(self.id) as wait:
            # Read before the timeout begins: `timeout=0` returns a result that exists.
            job = await wait.seen()
            if not job.finished:
                try:
                    async with asyncio.timeout(seconds) as limit:
                        job = await wait.ended()
                except TimeoutError:
                    if not limit.expired():
                        raise
                    job = await waiter.read_again(self.id, wait) if seconds else job
                if not job.finished:
                    raise TimeoutError(await _lateness(store, wait, seconds))
        if job.status is Status.CANCELLED:
            raise JobCancelled(job.id, await _why_cancelled(store, job))
        if isinstance(job.result, Reference):
            job = msgspec.structs.replace(job, result=await value_of(self._home.offload(), job.id, job.result))
        return self._result_of(job)

    result = blocking(aresult, waits=True)

    def _portal(self) -> Portal:
        return self._home._portal()

    if not TYPE_CHECKING:  # a type checker would assume that every name exists

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, HANDLE)

    def _result_of(self, job: Job) -> T:
        result: T = read_result(job, self._returns)
        return result


def read_result(job: Job, returns: Any) -> Any:
    """The result of a finished job as this type; raises JobDead and ResultUnavailable."""
    if job.status is Status.DEAD:
        raise JobDead(job.id, job.reason or "no reason kept", job.error)
    if (problem := unstorable_problem(job.result)) is not None:
        raise ResultUnavailable(job.id, problem)
    try:
        return msgspec.convert(job.result, returns, dec_hook=decode_object, str_keys=True)
    except (msgspec.ValidationError, TypeError):
        # The annotation changed since, or cannot be restored: return the plain JSON.
        return job.result


async def _why_cancelled(store: Store, job: Job) -> str:
    """The reason; if a job was cancelled because of another, also how that one ended."""
    reason = job.reason or "no reason kept"
    with contextlib.suppress(StoreUnavailable):
        if (cause := await cause_of(store.operator, job)) is not None:
            reason += f"; it began with {describe_cause(cause)}"
    return reason


async def _lateness(store: Store, wait: Wait, seconds: float | None) -> str:
    """The message of a timeout, with its likeliest cause: no worker runs."""
    job = wait.job
    assert job is not None
    if wait.trouble is not None:
        return f"job {job.id} was {job.status} when last read; its status now is unknown: {wait.trouble}"
    message = f"job {job.id} is still {job.status} after {seconds:g} s"
    with contextlib.suppress(StoreUnavailable):
        if not await store.workers.list():
            message += "; no worker is alive"
        if (front := await front_of(store.operator, job, NEAR)) is not None:
            message += f"; its chain is at {describe_cause(front)}"
    return message
