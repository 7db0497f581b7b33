"""Chains: jobs one after the other, handed in together; each may take the result of the one before it."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

from windlass.client.blocking import Portal, blocking
from windlass.client.handle import Handle
from windlass.client.task import Desk, Task, TaskJob
from windlass.core.job import NewJob
from windlass.errors import InvalidOption

T = TypeVar("T")

AnyTask = Task[Any, Any, Any]
Link = NewJob | AnyTask
MOST_LINKS = 10_000


class ChainHandle(Handle[T], eq=False):
    """A chain that was handed in: its result is that of its last link."""

    links: tuple[Handle[Any], ...] = ()
    """The jobs, in their order."""

    def __repr__(self) -> str:
        return f"ChainHandle({self.id!r}, {len(self.links)} links)"


class Chain(Generic[T]):
    """Links in their order, checked but not handed in. Their ids are made: handed in again, it adds none."""

    def __init__(self, jobs: Sequence[TaskJob]) -> None:
        self._tasks = [job.task for job in jobs]
        self.jobs: tuple[NewJob, ...] = tuple(_linked(jobs))

    def __repr__(self) -> str:
        return f"chain({', '.join(job.type for job in self.jobs[:10])}{', …' if len(self.jobs) > 10 else ''})"

    async def aenqueue(self, *, connection: object = None) -> ChainHandle[T]:
        """Hand all links in, or none. The first is due; each of the others when the one before it has completed.

        With a `connection` of yours to the same database they are part of its transaction: your commit decides.
        """
        returns = [task.definition.returns for task in self._tasks]
        handles = await self._desk._hand_in(list(self.jobs), returns, connection)
        last = handles[-1]
        return ChainHandle(last._home, last.id, last.existing, returns[-1], tuple(handles))

    enqueue = blocking(aenqueue, here=lambda *_, connection=None, **__: connection is not None)

    @property
    def _desk(self) -> Desk:
        return self._tasks[0]._desk

    def _portal(self) -> Portal:
        return self._desk._portal()


@overload
def chain(first: Link, last: Task[Any, Any, T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, last: Task[Any, Any, T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, third: Link, last: Task[Any, Any, T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, third: Link, fourth: Link, last: Task[Any, Any, T], /) -> Chain[T]: ...
@overload
def chain(first: Link, /, *links: Link) -> Chain[Any]: ...
def chain(first: Link, /, *links: Link) -> Chain[Any]:
    """Jobs one after the other: `chain(fetch.job(1), parse, store.job(PREVIOUS, bucket="x")).enqueue()`.

    A link is a job, in which `PREVIOUS` stands for the result of the link before it, or a bare task, whose first
    parameter gets that result. Each link has the options of its task, or of `task.using(...)`; a delay counts from
    the end of the link before. A link that dies or is cancelled ends the rest; a retry of it brings the rest back.
    """
    given = (first, *links)
    if len(given) > MOST_LINKS:
        raise InvalidOption("chain", f"has {len(given):,} links, the limit is {MOST_LINKS:,}")
    return Chain([_link(each, place) for place, each in enumerate(given, 1)])


def _link(given: object, place: int) -> TaskJob:
    job = given
    if isinstance(given, Task):
        job = given.job() if place == 1 else given.link()
    if not isinstance(job, TaskJob):
        problem = f"must be a task, or a job made with task.job(...), not {type(given).__name__}"
        spread = "; of a list: chain(*links)" if isinstance(given, list | tuple) else ""
        raise InvalidOption(f"link {place}", problem + spread)
    if place == 1 and job.takes:
        raise InvalidOption("link 1", f"{job.takes[0][0]} is PREVIOUS, but nothing comes before the first link")
    if place > 1 and job.parent is not None:
        raise InvalidOption(f"link {place}", "has a parent of its own; in a chain that is the link before it")
    return job


def _linked(jobs: Sequence[TaskJob]) -> list[NewJob]:
    """Each after the one before it. The first gives the whole its name."""
    seen: dict[str, int] = {}
    found = []
    for place, job in enumerate(jobs, 1):
        if job.id in seen:
            raise InvalidOption(f"link {place}", f"is the same job as link {seen[job.id]}: make one for each")
        seen[job.id] = place
        linked = msgspec.structs.replace(job.plain(), flow=jobs[0].id)
        if place > 1:
            before = jobs[place - 2].id
            takes = tuple((name, before) for name, _ in job.takes)
            linked = msgspec.structs.replace(linked, parent=before, parents=(before,), takes=takes)
        found.append(linked)
    return found
