"""Results[T]: the results of a group's members, for its callback. Read page by page, in the order of the group."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, get_args

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.groups.members import ENDED
from windlass.client.handle import read_result
from windlass.client.runtime.offloaded import value_of
from windlass.client.runtime.portal import Portal, blocking, refuse_on_loop
from windlass.client.tasks.context import entered
from windlass.core.groups.ids import before_added, is_member_id, member_id, member_index
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, JobError
from windlass.core.reference import Reference
from windlass.core.status import FINISHED, Status
from windlass.errors import NotInJob, ResultUnavailable
from windlass.store.contract import Store
from windlass.store.records import JobFilter

T = TypeVar("T")
PAGE = 100
"""Members that are read at once."""
GROUP, SIZE, ADDED = "group", "size", "added"


class Home(Protocol):
    """What results need of their app."""

    async def _ready(self) -> Store: ...

    def offload(self) -> Offload | None: ...

    def _portal(self) -> Portal: ...


class MemberFailure(msgspec.Struct, frozen=True):
    """A member that ended without completing, or is not kept."""

    index: int | None
    """None: a member added it."""
    id: JobId
    status: Status | None
    """None: the job is not kept any more."""
    reason: str | None = None
    error: JobError | None = None


class _Start(msgspec.Struct, frozen=True):
    """Where a page of members begins."""

    index: int = 0
    after: JobId | None = None


class Results(Generic[T]):
    """The results of a group: `async for x in parts`, or `for x in parts` in a `def` task.

    Completed members only, in the order in which they were given, then those that members added; `len` counts all
    members. Each is read when it is needed, so a group of any size fits into memory. Members that run are left out:
    for `on_dead` those that have not ended, and those that were retried since.
    """

    def __init__(self, home: Home, group: JobId, size: int, kind: Any = Any, *, added: int = 0) -> None:
        self._home, self.group, self._size, self._kind = home, group, size, kind
        self._added = added

    def __repr__(self) -> str:
        return f"Results({self.group!r}, {len(self)} members)"

    def __len__(self) -> int:
        return self._size + self._added

    async def __aiter__(self) -> AsyncIterator[T]:
        start: _Start | None = _Start()
        while start is not None:
            values, start = await self._values(start)
            for value in values:
                yield value

    def __iter__(self) -> Iterator[T]:
        refuse_on_loop("for … in results", "async for … in results")
        start: _Start | None = _Start()
        while start is not None:
            values, start = self._portal().run(self._values(start))
            yield from values

    async def afailures(self) -> Sequence[MemberFailure]:
        """The members that did not complete, or are not kept, in order."""
        found: list[MemberFailure] = []
        start: _Start | None = _Start()
        while start is not None:
            page, start = await self._page(start)
            for id_, job in page:
                index = member_index(self.group, id_)
                if job is None:
                    found.append(MemberFailure(index, id_, None))
                elif job.status in FINISHED and job.status is not Status.COMPLETED:
                    found.append(MemberFailure(index, id_, job.status, job.reason, job.error))
        return found

    failures = blocking(afailures)

    async def _values(self, start: "_Start") -> tuple[list[T], "_Start | None"]:
        page, following = await self._page(start)
        await self._check_kept([id_ for id_, job in page if job is None])
        return [
            await self._value(job) for _, job in page if job is not None and job.status is Status.COMPLETED
        ], following

    async def _check_kept(self, dropped: list[JobId]) -> None:
        """Raise ResultUnavailable for a dropped member, unless it is known that it did not complete."""
        outcomes = await (await self._home._ready()).operator.outcomes(dropped) if dropped else []
        for id_, outcome in zip(dropped, outcomes, strict=True):
            if outcome is None or outcome == Status.COMPLETED:
                raise ResultUnavailable(id_, "the job is not kept any more")

    async def _page(self, start: "_Start") -> tuple["list[tuple[JobId, Job | None]]", "_Start | None"]:
        """Some members, and where to go on: by index, then those that members added, by id."""
        operator = (await self._home._ready()).operator
        if start.index < self._size:
            end = min(start.index + PAGE, self._size)
            ids = [member_id(self.group, index) for index in range(start.index, end)]
            following = _Start(end) if end < self._size or self._added else None
        else:
            after = start.after or before_added(self.group)
            ids = (
                await operator.select(JobFilter(parent=self.group, status=ENDED), PAGE, after) if self._added else []
            )
            following = _Start(start.index, ids[-1]) if ids else None
            ids = [id_ for id_ in ids if is_member_id(self.group, id_)]
        return list(zip(ids, await operator.get(ids) if ids else [], strict=True)), following

    async def _value(self, job: Job) -> T:
        if isinstance(job.result, Reference):
            job = msgspec.structs.replace(job, result=await value_of(self._home.offload(), job.id, job.result))
        value: T = read_result(job, self._kind)
        return value

    def _portal(self) -> Portal:
        return self._home._portal()

    def reference(self) -> dict[str, Any]:
        """The reference that represents the results in a payload."""
        found: dict[str, Any] = {GROUP: self.group, SIZE: self._size}
        return {**found, ADDED: self._added} if self._added else found

    @staticmethod
    def restore_from_json(kind: Any, value: Any) -> "Results[Any]":
        """The results behind a reference in a stored payload."""
        link = entered.get(None)
        if link is None:
            raise NotInJob
        if not isinstance(value, dict) or value.keys() | {ADDED} != {GROUP, SIZE, ADDED}:
            raise TypeError("is not a reference to the results of a group")
        return Results.behind(link.home, kind, value)

    @staticmethod
    def behind(home: Home, kind: Any, reference: Mapping[str, Any]) -> "Results[Any]":
        """The results behind a reference; `kind` is Results[T]."""
        added = int(reference.get(ADDED, 0))
        return Results(home, str(reference[GROUP]), int(reference[SIZE]), *get_args(kind), added=added)
