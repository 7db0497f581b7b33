"""Results[T]: the results of a group's members, for its callback. Read page by page, in the order of the group."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, get_args

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.handle import read_result
from windlass.client.runtime.offloaded import value_of
from windlass.client.runtime.portal import Portal, blocking, refuse_on_loop
from windlass.client.tasks.context import entered
from windlass.core.groups.ids import member_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, JobError
from windlass.core.reference import Reference
from windlass.core.status import FINISHED, Status
from windlass.errors import NotInJob, ResultUnavailable
from windlass.store.contract import Store

T = TypeVar("T")
PAGE = 100
"""Members that are read at once."""
GROUP, SIZE = "group", "size"


class Home(Protocol):
    """What results need of their app."""

    async def _ready(self) -> Store: ...

    def offload(self) -> Offload | None: ...

    def _portal(self) -> Portal: ...


class MemberFailure(msgspec.Struct, frozen=True):
    """A member that ended without completing, or is not kept."""

    index: int
    id: JobId
    status: Status | None
    """None: the job is not kept any more."""
    reason: str | None = None
    error: JobError | None = None


class Results(Generic[T]):
    """The results of a group: `async for x in parts`, or `for x in parts` in a `def` task.

    Completed members only, in the order in which they were given; `len` counts all members. Each is read when it is
    needed, so a group of any size fits into memory.
    """

    def __init__(self, home: Home, group: JobId, size: int, kind: Any = Any) -> None:
        self._home, self.group, self._size, self._kind = home, group, size, kind

    def __repr__(self) -> str:
        return f"Results({self.group!r}, {self._size} members)"

    def __len__(self) -> int:
        return self._size

    async def __aiter__(self) -> AsyncIterator[T]:
        for start in range(0, self._size, PAGE):
            for result in await self._page(start):
                yield result

    def __iter__(self) -> Iterator[T]:
        refuse_on_loop("for … in results", "async for … in results")
        for start in range(0, self._size, PAGE):
            yield from self._portal().run(self._page(start))

    async def afailures(self) -> Sequence[MemberFailure]:
        """The members that did not complete, in order."""
        found: list[MemberFailure] = []
        for start in range(0, self._size, PAGE):
            for index, job in enumerate(await self._jobs(start), start):
                if job is None:
                    found.append(MemberFailure(index, member_id(self.group, index), None))
                elif job.status in FINISHED and job.status is not Status.COMPLETED:
                    found.append(MemberFailure(index, job.id, job.status, job.reason, job.error))
        return found

    failures = blocking(afailures)

    async def _page(self, start: int) -> list[T]:
        found = []
        for index, job in enumerate(await self._jobs(start), start):
            if job is None:
                raise ResultUnavailable(member_id(self.group, index), "the job is not kept any more")
            if job.status is Status.COMPLETED:
                found.append(await self._value(job))
        return found

    async def _jobs(self, start: int) -> list[Job | None]:
        store = await self._home._ready()
        ids = [member_id(self.group, index) for index in range(start, min(start + PAGE, self._size))]
        return await store.operator.get(ids)

    async def _value(self, job: Job) -> T:
        if isinstance(job.result, Reference):
            job = msgspec.structs.replace(job, result=await value_of(self._home.offload(), job.id, job.result))
        value: T = read_result(job, self._kind)
        return value

    def _portal(self) -> Portal:
        return self._home._portal()

    def reference(self) -> dict[str, Any]:
        """What a payload has in place of it."""
        return {GROUP: self.group, SIZE: self._size}

    @staticmethod
    def restore_from_json(kind: Any, value: Any) -> "Results[Any]":
        """The results that a reference in a stored payload stands for."""
        link = entered.get(None)
        if link is None:
            raise NotInJob
        if not isinstance(value, dict) or value.keys() != {GROUP, SIZE}:
            raise TypeError("is not a reference to the results of a group")
        return Results(link.home, str(value[GROUP]), int(value[SIZE]), *get_args(kind))
