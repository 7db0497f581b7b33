"""A job that was handed in, and its result."""

import asyncio
import contextlib
from collections.abc import Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.aside import value_of
from windlass.client.berth import Berth
from windlass.client.blocking import Portal, blocking
from windlass.client.links import cause_of, front_of
from windlass.client.lookout import Wait
from windlass.core.chain import told_of
from windlass.core.codec import decode_object
from windlass.core.job import Job
from windlass.core.reference import Reference
from windlass.core.status import Status
from windlass.errors import JobCancelled, JobDead, StoreUnavailable
from windlass.store.contract import Store

T = TypeVar("T")
NEAR = 100
"""So many links up one looks for the one at which a chain stands, when the time is over already."""


class Home(Protocol):
    """What a handle needs of its app."""

    async def _ready(self) -> Store: ...

    def offload(self) -> Offload | None: ...

    @property
    def _berth(self) -> Berth: ...

    def _portal(self) -> Portal: ...


class Handle(msgspec.Struct, Generic[T], eq=False, gc=False):
    """The job that stands for what was handed in; `existing` if it stood there before.

    A bulk makes a hundred thousand of them. Nothing leads back to one, so the garbage collector need not look.
    """

    _home: Home
    id: str
    existing: bool = False
    _returns: Any = Any

    def __repr__(self) -> str:
        return f"Handle({self.id!r}{', existing=True' if self.existing else ''})"

    async def aresult(self, timeout: float | None = None) -> T:
        """Wait until the job has ended, through all its retries, and return what it returned.

        A store that goes away meanwhile is waited for. Raises JobDead, JobCancelled, JobNotFound (nothing of it is
        kept; its `outcome` tells whether it completed), BlobUnavailable, TimeoutError, or StoreUnavailable.
        """
        store = await self._home._ready()
        lookout = self._home._berth.lookout(store)
        with lookout.waiting(self.id) as wait:
            # Looked at before the time counts: `timeout=0` asks whether it is there already.
            job = await wait.seen()
            if not job.finished:
                try:
                    async with asyncio.timeout(timeout) as limit:
                        job = await wait.ended()
                except TimeoutError:
                    if not limit.expired():
                        raise
                    job = await lookout.last_look(self.id, wait) if timeout else job
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
        try:
            result: T = msgspec.convert(job.result, self._returns, dec_hook=decode_object, str_keys=True)
        except (msgspec.ValidationError, TypeError):
            # The annotation changed since, or cannot be restored: the plain JSON is better than nothing.
            result = job.result
        return result


async def _why_cancelled(store: Store, job: Job) -> str:
    """Its reason; of a link that fell with another, also how that one ended."""
    reason = job.reason or "no reason kept"
    with contextlib.suppress(StoreUnavailable):
        if (cause := await cause_of(store.operator, job)) is not None:
            reason += f"; it began with {told_of(cause)}"
    return reason


async def _lateness(store: Store, wait: Wait, timeout: float | None) -> str:
    """What to tell somebody who has waited in vain; the likeliest reason is that nobody works."""
    job = wait.job
    assert job is not None
    if wait.trouble is not None:
        return f"job {job.id} was {job.status} when last seen; what became of it is not known: {wait.trouble}"
    told = f"job {job.id} is still {job.status} after {timeout:g} s"
    with contextlib.suppress(StoreUnavailable):
        if not await store.workers.list():
            told += "; no worker is alive"
        if (front := await front_of(store.operator, job, NEAR)) is not None:
            told += f"; its chain is at {told_of(front)}"
    return told


class ChildHandle(Handle[T], eq=False):
    """What `ctx.enqueue` gives: in `async def`, `await` it and it is handed in; in `def` it is already."""

    _hand_in: Coroutine[Any, Any, list[Handle[Any]]] | None = None

    def __await__(self) -> Generator[Any, None, Handle[T]]:
        return self._handed_in().__await__()

    async def _handed_in(self) -> Handle[T]:
        """Hand the job in, once."""
        if self._hand_in is not None:
            hand_in, self._hand_in = self._hand_in, None
            (stands,) = await hand_in
            self.id, self.existing = stands.id, stands.existing
        return self
