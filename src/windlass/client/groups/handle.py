"""The handle on an enqueued group."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from windlass.client.groups.results import ADDED, SIZE, Results
from windlass.client.handle import CANCELLED, Handle
from windlass.client.runtime.portal import blocking
from windlass.client.tasks.task import TaskJob
from windlass.core.groups.ids import Role, callback_id, member_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import Duration

T = TypeVar("T")


class GroupHandle(Handle[T], eq=False):
    """An enqueued group; its result is that of `then`, or without one the results of its members."""

    size: int = 0
    then: Handle[Any] | None = None
    on_dead: Handle[Any] | None = None
    always: Handle[Any] | None = None

    def __repr__(self) -> str:
        return f"GroupHandle({self.id!r}, {self.size} members)"

    def member(self, index: int) -> Handle[Any]:
        """The member with this index, from 0."""
        if not 0 <= index < self.size:
            raise IndexError(f"the group has {self.size} members")
        return Handle(self._home, member_id(self.id, index))

    async def aresult(self, timeout: Duration | None = None) -> T:
        """Wait for the result of `then`, as `Handle.aresult`; without one, until all members have completed."""
        if self.then is not None:
            found: T = await self.then.aresult(timeout)
            return found
        result: Any = await Handle(self._home, self.id).aresult(timeout)
        size, added = (result[SIZE], result.get(ADDED, 0)) if isinstance(result, dict) else (self.size, 0)
        return cast("T", Results(self._home, self.id, size, self._returns, added=added))

    async def acancel(self, reason: str = CANCELLED) -> Job:
        """Cancel the group and its members, like `app.flows.cancel`; returns the group's job."""
        home: Any = self._home
        await home.flows.acancel(self.id, reason)
        return await self.ajob()

    result = blocking(aresult, waits=True)
    cancel = blocking(acancel)


def group_handle(
    home: Any, id_: JobId, callbacks: Mapping[Role, TaskJob[Any]], size: int, *, existing: bool, returns: Any
) -> GroupHandle[Any]:
    """The handle of a group with these callbacks."""
    roles: list[Handle[Any] | None] = [
        Handle(home, callback_id(id_, role), existing, callbacks[role].task.definition.returns)
        if role in callbacks
        else None
        for role in Role
    ]
    return GroupHandle(home, id_, existing, returns, size, *roles)
