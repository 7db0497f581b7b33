"""The handle on an enqueued job, and its result."""

import asyncio
import contextlib
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.runtime.offloaded import value_of
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.runtime.result_waiter import Wait
from windlass.client.runtime.store_handle import StoreHandle
from windlass.client.verbs.links import cause_of, front_of
from windlass.core.codec import decode_object, unstorable_problem
from windlass.core.jobs.dependencies import describe_cause
from windlass.core.jobs.job import Job
from windlass.core.reference import Reference
from windlass.core.status import Status
from windlass.errors import JobCancelled, JobDead, ResultUnavailable, StoreUnavailable
from windlass.store.contract import Store

T = TypeVar("T")
NEAR = 100
"""After a timeout, the job at which a chain is held up is searched this many links back."""


class Home(Protocol):
    """What a handle needs of its app."""

    async def _ready(self) -> Store: ...

    def offload(self) -> Offload | None: ...

    @property
    def _store_handle(self) -> StoreHandle: ...

    def _portal(self) -> Portal: ...


class Handle(msgspec.Struct, Generic[T], eq=False, gc=False):
    """An enqueued job; `existing` if it existed before.

    A batch may make a hundred thousand of them. They are in no cycle, so the garbage collector does not track them.
    """

    _home: Home
    id: str
    existing: bool = False
    _returns: Any = Any

    def __repr__(self) -> str:
        return f"Handle({self.id!r}{', existing=True' if self.existing else ''})"

    async def aresult(self, timeout: float | None = None) -> T:
        """Wait until the job has ended, through all its retries, and return its result.

        Waits through outages of the store. Raises JobDead, JobCancelled, JobNotFound (it is not kept; `outcome` tells
        whether it completed), ResultUnavailable (it completed, and its result could not be kept), BlobUnavailable,
        TimeoutError, or StoreUnavailable.
        """
        store = await self._home._ready()
        waiter = self._home._store_handle.result_waiter(store)
        with waiter.waiting(self.id) as wait:
            # Read before the timeout counts: `timeout=0` asks whether the result is there.
            job = await wait.seen()
            if not job.finished:
                try:
                    async with asyncio.timeout(timeout) as limit:
                        job = await wait.ended()
                except TimeoutError:
                    if not limit.expired():
                        raise
                    job = await waiter.read_again(self.id, wait) if timeout else job
                if not job.finished:
                    raise TimeoutError(await _lateness(store, wait, timeout))
        if job.status is Status.CANCELLED:
            raise JobCancelled(job.id, await _why_cancelled(store, job))
        if isinstance(job.result, Reference):
            job = msgspec.structs.replace(job, result=await value_of(self._home.offload(), job.id, job.result))
        return self._result_of(job)

    result = blocking(aresult, waits=True)

    def _portal(self) -> Portal:
        return self._home._portal()

    def _result_of(self, job: Job) -> T:
        if job.status is Status.DEAD:
            raise JobDead(job.id, job.reason or "no reason kept", job.error)
        if (problem := unstorable_problem(job.result)) is not None:
            raise ResultUnavailable(job.id, problem)
        try:
            result: T = msgspec.convert(job.result, self._returns, dec_hook=decode_object, str_keys=True)
        except (msgspec.ValidationError, TypeError):
            # The annotation changed since, or cannot be restored: return the plain JSON.
            result = job.result
        return result


async def _why_cancelled(store: Store, job: Job) -> str:
    """Its reason; of a link that was cancelled with another, also how that one ended."""
    reason = job.reason or "no reason kept"
    with contextlib.suppress(StoreUnavailable):
        if (cause := await cause_of(store.operator, job)) is not None:
            reason += f"; it began with {describe_cause(cause)}"
    return reason


async def _lateness(store: Store, wait: Wait, timeout: float | None) -> str:
    """The message of a timeout; the likeliest cause is that no worker runs."""
    job = wait.job
    assert job is not None
    if wait.trouble is not None:
        return f"job {job.id} was {job.status} when last seen; what became of it is not known: {wait.trouble}"
    told = f"job {job.id} is still {job.status} after {timeout:g} s"
    with contextlib.suppress(StoreUnavailable):
        if not await store.workers.list():
            told += "; no worker is alive"
        if (front := await front_of(store.operator, job, NEAR)) is not None:
            told += f"; its chain is at {describe_cause(front)}"
    return told
