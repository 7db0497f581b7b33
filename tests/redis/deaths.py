"""Processes that die between two scripts, and the coordinator that comes after them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.chains import follow_on
from tests.support.clock import ManualClock
from tests.support.seed import new_job
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.store.redis.connection.access import Access
from windlass.store.redis.store import RedisStore

LONG = 10 * SECOND
"""After which no process is taken to be still at it."""
Step = tuple[str, bool]
"""At which script a process dies, and whether that was done."""


class Death(BaseException):
    """Nothing continues after it."""


def steps(*names: str) -> list[Step]:
    return [(name, done) for name in names for done in (False, True)]


def shown(step: object) -> str:
    return f"{step[0]} {'done' if step[1] else 'not done'}" if isinstance(step, tuple) else ""


@contextmanager
def dying_at(step: Step) -> Iterator[None]:
    """A process that comes to this script dies there."""
    name, done = step
    call, calls, each = Access.call, Access.call_queues, Access.call_each

    async def watched(self: Access, wanted: str, act: Callable[[], Awaitable[Any]]) -> Any:
        if wanted == name and not done:
            raise Death
        reply = await act()
        if wanted == name:
            raise Death
        return reply

    async def one(self: Access, wanted: str, queue: str, request: Any, *blobs: bytes) -> Any:
        return await watched(self, wanted, lambda: call(self, wanted, queue, request, *blobs))

    async def many(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        return await watched(self, wanted, lambda: calls(self, wanted, requests)) if requests else {}

    async def apart(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        return await watched(self, wanted, lambda: each(self, wanted, requests)) if requests else {}

    died = False
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Access, "call", one)
        patched.setattr(Access, "call_queues", many)
        patched.setattr(Access, "call_each", apart)
        try:
            yield
        except Death:
            died = True
    assert died, f"no call came to {name}"


def winding() -> list[NewJob]:
    """A chain that goes through several queues."""
    return follow_on([new_job(queue=queue) for queue in ("default", "default", "other", "default", "third")])


async def be_left_alone(store: RedisStore, clock: ManualClock) -> None:
    """What a dead process left is finished by the coordinator."""
    clock.advance(LONG)
    await store.tidy()


async def wipe(store: RedisStore, queue: str) -> None:
    """As if no job had ever come to it."""
    access = store._access
    keys = ("jobs", "ids", "counts", "dependents", "parent_checks", "ready", "pending_counts")
    await access._command("DEL", *access.server.keys.of_queue(queue, keys))


async def nothing_left(store: RedisStore) -> bool:
    """Whether all messages were delivered."""
    access = store._access
    now = await access.now()
    for queue in await access.queue_names():
        wake, outbox, asking = access.server.keys.of_queue(queue, ("parent_changes", "outbox", "parent_checks"))
        if await access._command("EXISTS", wake) or await access._command("EXISTS", outbox):
            return False
        if await access._command("ZCOUNT", asking, "-inf", now):
            return False
    return True
