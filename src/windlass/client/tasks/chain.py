"""Chains: jobs one after the other, enqueued together; each may use the result of the one before it."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from windlass.client.elsewhere import CHAIN, no_attribute
from windlass.client.groups.group import Group
from windlass.client.groups.handle import GroupHandle
from windlass.client.groups.plan import ChainContext, Linked, after, kind_of
from windlass.client.handle import CANCELLED, Handle
from windlass.client.runtime.portal import Portal, blocking
from windlass.client.tasks.joint import joint_connection, own_connection
from windlass.client.tasks.task import Enqueuer, Task, TaskJob
from windlass.client.verbs.links import links_of
from windlass.core.groups.ids import GROUP_TYPE, link_id
from windlass.core.jobs.job import Job, NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption, NotAllowedNow
from windlass.store.contract import OperatorStore

T = TypeVar("T")

AnyTask = Task[Any, Any, Any]
Link = NewJob | AnyTask | Group[Any]
Made = TaskJob[Any] | Group[Any]
Last = Task[Any, Any, T] | TaskJob[T] | Group[T]
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
        """Cancel the chain at its current link, and with it all later links; returns the first cancelled link.

        A running link is asked to stop; the next one is cancelled, however that link ends.
        """
        operator = (await self._home._ready()).operator
        ids = [id_ for link in self.links for id_ in _ids_of(link)] or await self._ids(operator)
        for start in range(0, len(ids), _BATCH):
            found = await operator.get(ids[start : start + _BATCH])
            for job in [each for each in found if each is not None and not each.finished]:
                if job.type == GROUP_TYPE:
                    home: Any = self._home
                    await home.flows.acancel(job.id, reason)
                    return await self._home.jobs.aget(job.id)
                with contextlib.suppress(NotAllowedNow):  # it has ended meanwhile
                    after = await self._home.jobs.acancel(job.id, reason)
                    if after.status is Status.CANCELLED:
                        return after
        return await self._home.jobs.acancel(self.id, reason)

    cancel = blocking(acancel)

    async def _ids(self, operator: OperatorStore) -> list[str]:
        links = await links_of(operator, await self._home.jobs.aget(self.id), MAX_LINKS)
        return [job.id for job in links]


def _ids_of(link: Handle[Any]) -> list[str]:
    """The jobs of a link in order; of a group, its own job and `then`."""
    then = link.then if isinstance(link, GroupHandle) else None
    return [link.id] if then is None else [link.id, then.id]


def _has_connection(links: "Chain[Any]", *, connection: object = None) -> bool:
    return connection is not None or own_connection(links._made[0]) is not None


class Chain(Generic[T]):
    """Links in order, checked but not enqueued. Their ids are fixed: enqueueing it twice adds none."""

    def __init__(self, links: Sequence[Made]) -> None:
        self._made = tuple(links)
        self.jobs: tuple[NewJob, ...] = tuple(self._joined(None).jobs)

    def __repr__(self) -> str:
        return f"chain({', '.join(job.type for job in self.jobs[:10])}{', …' if len(self.jobs) > 10 else ''})"

    async def aenqueue(self, *, connection: object = None) -> ChainHandle[T]:
        """Enqueue all links, or none. The first is due; each other one when the one before it has completed.

        With a `connection` to the same database they are part of its transaction: your commit decides.
        """
        joint = joint_connection([each for each in self._made if isinstance(each, TaskJob)], connection)
        returns: list[Any] = [Any] * len(self.jobs)
        found = {each.id: each for each in await self._enqueuer._enqueue_jobs(list(self.jobs), returns, joint)}
        links = tuple([self._handle(link, found) for link in self._made])
        last = found[links[-1].id]
        if isinstance(links[-1], GroupHandle) and links[-1].then is not None:
            last = links[-1].then
        return ChainHandle(last._home, last.id, last.existing, links[-1]._returns, links)

    def _handle(self, link: Made, found: Mapping[str, Handle[Any]]) -> Handle[Any]:
        known = found[link.id]
        if isinstance(link, Group):
            return link._handle(known._home, existing=known.existing)
        return Handle(known._home, known.id, known.existing, link.task.definition.returns)

    enqueue = blocking(aenqueue, here=_has_connection)

    def _linked(self, context: ChainContext) -> Linked:
        """The jobs of the chain as a member of a group, with ids derived from the group's."""
        if any(isinstance(link, Group) for link in self._made):
            raise InvalidOption("jobs", "a chain with a group cannot be a member of a group")
        return self._joined(context)

    @property
    def _last(self) -> TaskJob[Any]:
        """The last link, which must be a job: a chain that ends with a group cannot be a member of a group."""
        last = self._made[-1]
        if isinstance(last, Group):
            raise InvalidOption("jobs", "a chain with a group cannot be a member of a group")
        return last

    def _joined(self, context: ChainContext | None) -> Linked:
        """Each link with the one before it as its parent. The first link names the flow."""
        seen: dict[str, int] = {}
        jobs: list[NewJob] = []
        end = None if context is None else context.before
        for number, link in enumerate(self._made, 1):
            if link.id in seen:
                raise InvalidOption(f"link {number}", f"is the same job as link {seen[link.id]}: make one for each")
            seen[link.id] = number
            if isinstance(link, Group):
                jobs_of_it, end = link._linked(end, as_list=_takes_list(self._made[number : number + 1]))
                jobs += jobs_of_it
            else:
                jobs.append(self._job(link, number, end, context))
                end = jobs[-1].id
        assert end is not None
        return Linked(jobs, end)

    def _job(self, link: TaskJob[Any], number: int, before: str | None, context: ChainContext | None) -> NewJob:
        parent = {} if number == 1 else {"parent": before}
        if context is None:
            return after(link, before, flow=self._made[0].id, **parent)
        id_ = link_id(context.seed, number)
        return after(link, before, id=id_, flow=context.flow, fresh=context.fresh, **parent)

    @property
    def _enqueuer(self) -> Enqueuer:
        for link in self._made:  # a group without members belongs to no app
            if isinstance(link, TaskJob):
                return link.task._enqueuer
        groups = [link for link in self._made if isinstance(link, Group)]
        return groups[0]._enqueuer

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
    """Jobs one after the other: `chain(fetch.job(1), parse, store.job(PREVIOUS, folder="x")).enqueue()`.

    A link is a job, in which `PREVIOUS` stands for the result of the link before it, or a bare task, whose first
    parameter gets that result, or a group, whose members start together and may have `PREVIOUS`; the link after it
    gets its results, or the result of its `then`. Each link has the options of its task, or of `task.using(...)`; a
    delay counts from the end of the link before. A link that dies or is cancelled cancels the rest; a retry of it
    restores the rest.
    """
    given = (first, *links)
    if len(given) > MAX_LINKS:
        raise InvalidOption("chain", f"has {len(given):,} links, the limit is {MAX_LINKS:,}", limit=MAX_LINKS)
    return Chain([_link(each, number) for number, each in enumerate(given, 1)])


def _takes_list(following: Sequence[Made]) -> bool:
    """Whether the link after a group takes the group's results as a list."""
    return any(isinstance(link, TaskJob) and kind_of(link) is list for link in following)


def _link(given: object, number: int) -> Made:
    if isinstance(given, Group):
        return given
    job = given
    if isinstance(given, Task):
        job = given.job() if number == 1 else given.link()
    if not isinstance(job, TaskJob):
        problem = f"must be a task, or a job made with task.job(...), not {type(given).__name__}"
        spread = "; of a list: chain(*links)" if isinstance(given, list | tuple) else ""
        raise InvalidOption(f"link {number}", problem + spread)
    if number == 1 and job.result_params:
        raise InvalidOption(
            "link 1", f"{job.result_params[0][0]} is PREVIOUS, but nothing comes before the first link"
        )
    if number > 1 and job.parent is not None:
        raise InvalidOption(f"link {number}", "has a parent of its own; in a chain that is the link before it")
    return job
