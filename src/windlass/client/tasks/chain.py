"""Chains: jobs one after the other, enqueued together; each may use the result of the one before it."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from windlass.client.elsewhere import CHAIN, no_attribute
from windlass.client.handle import CANCELLED, Handle
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.tasks.joint import joint_connection, own_connection
from windlass.client.tasks.task import Enqueuer, Task, TaskJob
from windlass.client.verbs.links import links_of
from windlass.core.jobs.job import Job, NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption, NotAllowedNow
from windlass.store.contract import OperatorStore

T = TypeVar("T")

AnyTask = Task[Any, Any, Any]
Link = NewJob | AnyTask
Last = Task[Any, Any, T] | TaskJob[T]
MAX_LINKS = 10_000
_BATCH = 500


class ChainHandle(Handle[T], eq=False):
    """An enqueued chain; its result is that of its last link.

    Another process makes it again with that link's id, which is the chain's: `ChainHandle(app, id)`.
    """

    links: tuple[Handle[Any], ...] = ()
    """The jobs, in order; none if it was made of an id."""

    def __repr__(self) -> str:
        return f"ChainHandle({self.id!r}, {len(self.links)} links)"

    async def acancel(self, reason: str = CANCELLED) -> Job:
        """Cancel the chain: the link that it is at, and with it all that follow; returns the first cancelled link.

        A link that runs is asked to stop; whatever it does, the next one is cancelled.
        """
        operator = (await self._home._ready()).operator
        ids = [link.id for link in self.links] or await self._ids(operator)
        for start in range(0, len(ids), _BATCH):
            found = await operator.get(ids[start : start + _BATCH])
            for job in [each for each in found if each is not None and not each.finished]:
                with contextlib.suppress(NotAllowedNow):  # it has ended meanwhile
                    after = await self._home.jobs.acancel(job.id, reason)
                    if after.status is Status.CANCELLED:
                        return after
        return await self._home.jobs.acancel(self.id, reason)

    cancel = blocking(acancel)

    async def _ids(self, operator: OperatorStore) -> list[str]:
        links = await links_of(operator, await self._home.jobs.aget(self.id), MAX_LINKS)
        return [job.id for job in links]


def _has_connection(links: "Chain[Any]", *, connection: object = None) -> bool:
    return connection is not None or own_connection(links._made[0]) is not None


class Chain(Generic[T]):
    """Links in order, checked but not enqueued. Their ids are fixed: enqueueing it twice adds none."""

    def __init__(self, jobs: Sequence[TaskJob[Any]]) -> None:
        self._made = tuple(jobs)
        self.jobs: tuple[NewJob, ...] = tuple(_linked(jobs))

    def __repr__(self) -> str:
        return f"chain({', '.join(job.type for job in self.jobs[:10])}{', …' if len(self.jobs) > 10 else ''})"

    async def aenqueue(self, *, connection: object = None) -> ChainHandle[T]:
        """Enqueue all links, or none. The first is due; each other one when the one before it has completed.

        With a `connection` to the same database they are part of its transaction: your commit decides.
        """
        returns = [job.task.definition.returns for job in self._made]
        joint = joint_connection(self._made, connection)
        handles = await self._enqueuer._enqueue_jobs(list(self.jobs), returns, joint)
        last = handles[-1]
        return ChainHandle(last._home, last.id, last.existing, returns[-1], tuple(handles))

    enqueue = blocking(aenqueue, here=_has_connection)

    @property
    def _enqueuer(self) -> Enqueuer:
        return self._made[0].task._enqueuer

    def _portal(self) -> Portal:
        return self._enqueuer._portal()

    if not TYPE_CHECKING:  # a type checker would assume that every name exists

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, CHAIN)


@overload
def chain(last: Last[T], /) -> Chain[T]: ...
@overload
def chain(first: Link, last: Last[T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, last: Last[T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, third: Link, last: Last[T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, third: Link, fourth: Link, last: Last[T], /) -> Chain[T]: ...
@overload
def chain(first: Link, second: Link, third: Link, fourth: Link, fifth: Link, last: Last[T], /) -> Chain[T]: ...
@overload
def chain(
    first: Link, second: Link, third: Link, fourth: Link, fifth: Link, sixth: Link, last: Last[T], /
) -> Chain[T]: ...
@overload
def chain(
    first: Link, second: Link, third: Link, fourth: Link, fifth: Link, sixth: Link, seventh: Link, last: Last[T], /
) -> Chain[T]: ...
@overload
def chain(first: Link, /, *links: Link) -> Chain[Any]: ...
def chain(first: Link, /, *links: Link) -> Chain[Any]:
    """Jobs one after the other: `chain(fetch.job(1), parse, store.job(PREVIOUS, bucket="x")).enqueue()`.

    A link is a job, in which `PREVIOUS` stands for the result of the link before it, or a bare task, whose first
    parameter gets that result. Each link has the options of its task, or of `task.using(...)`; a delay counts from
    the end of the link before. A link that dies or is cancelled cancels the rest; a retry of it restores the rest.
    """
    given = (first, *links)
    if len(given) > MAX_LINKS:
        raise InvalidOption("chain", f"has {len(given):,} links, the limit is {MAX_LINKS:,}", limit=MAX_LINKS)
    return Chain([_link(each, place) for place, each in enumerate(given, 1)])


def _link(given: object, place: int) -> TaskJob[Any]:
    job = given
    if isinstance(given, Task):
        job = given.job() if place == 1 else given.link()
    if not isinstance(job, TaskJob):
        problem = f"must be a task, or a job made with task.job(...), not {type(given).__name__}"
        spread = "; of a list: chain(*links)" if isinstance(given, list | tuple) else ""
        raise InvalidOption(f"link {place}", problem + spread)
    if place == 1 and job.result_params:
        raise InvalidOption(
            "link 1", f"{job.result_params[0][0]} is PREVIOUS, but nothing comes before the first link"
        )
    if place > 1 and job.parent is not None:
        raise InvalidOption(f"link {place}", "has a parent of its own; in a chain that is the link before it")
    return job


def _linked(jobs: Sequence[TaskJob[Any]]) -> list[NewJob]:
    """Each link with the one before it as its parent. The first link names the flow."""
    seen: dict[str, int] = {}
    found = []
    for place, job in enumerate(jobs, 1):
        if job.id in seen:
            raise InvalidOption(f"link {place}", f"is the same job as link {seen[job.id]}: make one for each")
        seen[job.id] = place
        linked = msgspec.structs.replace(job.plain(), flow=jobs[0].id)
        if place > 1:
            before = jobs[place - 2].id
            takes = tuple((name, before) for name, _ in job.result_params)
            linked = msgspec.structs.replace(linked, parent=before, parents=(before,), result_params=takes)
        found.append(linked)
    return found
