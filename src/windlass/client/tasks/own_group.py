"""ctx.group: the group of the running job, to which it may add members."""

from collections import Counter
from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec

from windlass.client.groups.cancelled import cancel_if_late, cancel_that_holds
from windlass.client.handle import Handle
from windlass.client.runtime.portal import Portal, is_on_loop, refuse_on_loop
from windlass.client.tasks.joint import check_call_connection
from windlass.core.codec import decode_object
from windlass.core.groups.ids import GROUP_TYPE, added_id, group_of
from windlass.core.groups.rules import GroupPayload
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption, NotAllowedNow
from windlass.store.contract import Store


class Home(Protocol):
    """What adding members needs of the app."""

    async def _ready(self) -> Store: ...

    def _portal(self) -> Portal: ...

    def _returns(self, type_: str) -> Any: ...

    async def _enqueue_jobs(
        self, jobs: list[NewJob], returns: list[Any], connection: object = None
    ) -> list[Handle[Any]]: ...


class OwnGroup:
    """The group that the running job is a member of."""

    def __init__(self, home: Home, job: Claimed, added: Counter[str], *, awaits: bool) -> None:
        group = group_of(job.id, job.parent, job.flow)
        if group is None:
            raise InvalidOption("ctx.group", "exists only for members of a group")
        self._home, self._job, self._awaits = home, job, awaits
        self._added = added
        self.id = group

    def __repr__(self) -> str:
        return f"OwnGroup({self.id!r})"

    def add(self, *jobs: NewJob) -> Any:
        """Add members: `ctx.group.add(load.job(2))` in `def`, `await ctx.group.add(…)` in `async def`; returns
        handles.

        The group ends after them, even if it is sealed. An attempt that runs again and adds the same jobs adds
        them once: the id of each is derived from this job, its type, queue and arguments, and its number among
        equal ones.
        """
        if self._awaits and is_on_loop():
            return self.aadd(*jobs)
        refuse_on_loop("ctx.group.add", "await ctx.group.add(…)")
        return self._home._portal().run(self.aadd(*jobs))

    def aadd(self, *jobs: NewJob) -> Coroutine[Any, Any, list[Handle[Any]]]:
        """As `add`, to be awaited."""
        adding = self._aadd([self._checked(job, index) for index, job in enumerate(jobs)])
        adding.__qualname__ = "Context.group.add"  # type: ignore[attr-defined]
        return adding

    def _checked(self, job: NewJob, index: int) -> NewJob:
        field = f"jobs[{index}]"
        if not isinstance(job, NewJob):
            raise InvalidOption(field, f"must be a job made with task.job(...), not {type(job).__name__}")
        if job.parents or job.result_params or job.parent is not None or not job.fresh:
            raise InvalidOption(field, "cannot have an id, a parent or PREVIOUS: it becomes a member of the group")
        if job.idempotency_key is not None:
            raise InvalidOption(f"{field}.idempotency_key", "cannot be given to a member that a member adds")
        check_call_connection(job, field, None, "members are not added in your transaction")
        return job

    async def _aadd(self, jobs: list[NewJob]) -> list[Handle[Any]]:
        store = await self._home._ready()
        group = (await store.operator.get([self.id]))[0]
        if group is None:
            raise InvalidOption("ctx.group", f"{self.id} is not kept any more")
        if group.type != GROUP_TYPE:
            raise InvalidOption("ctx.group", "exists only for members of a group, not for those of a flow or map")
        if group.status is Status.CANCELLED and await cancel_that_holds(store, self.id):
            raise NotAllowedNow("add a member to", self.id, group.status)
        payload = msgspec.convert(group.payload, GroupPayload, dec_hook=decode_object)
        if group.finished and payload.rest == "cancel":
            raise NotAllowedNow("add a member to", self.id, group.status)
        fields = {"concurrency_key": f"group:{self.id}", "key_limit": payload.max_running}
        numbered = [self._numbered(job) for job in jobs]
        try:
            members = [self._member(*each, fields if payload.max_running else {}) for each in numbered]
            handles = await self._home._enqueue_jobs(members, [self._home._returns(job.type) for job in jobs])
        except BaseException:
            self._give_back(numbered)
            raise
        if await cancel_if_late(store, self.id):
            raise NotAllowedNow("add a member to", self.id, Status.CANCELLED)
        return handles

    def _numbered(self, job: NewJob) -> tuple[NewJob, int]:
        """The job, and its number among the equal ones that this attempt adds."""
        self._added[_content(job)] += 1
        return job, self._added[_content(job)]

    def _give_back(self, numbered: list[tuple[NewJob, int]]) -> None:
        """Free the numbers of jobs that were not added, so that a repeated call has the same ids."""
        for job, number in reversed(numbered):
            if self._added[_content(job)] == number:
                self._added[_content(job)] -= 1

    def _member(self, job: NewJob, number: int, fields: dict[str, Any]) -> NewJob:
        if fields and (job.concurrency_key is not None or job.queue != self._job.queue):
            raise InvalidOption("max_running", "members must be in one queue, without a key of their own")
        id_ = added_id(self.id, self._job.id, f"{number} {_content(job)}")
        plain = {name: getattr(job, name) for name in NewJob.__struct_fields__}
        return NewJob(**{**plain, "id": id_, "parent": self.id, "flow": self.id, "fresh": "", **fields})


def _content(job: NewJob) -> str:
    return f"{job.type} {job.queue} {job.payload}"
