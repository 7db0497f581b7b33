"""Reads of the store that are shared by the requests in flight."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from typing import Any, Generic, TypeVar

import msgspec

from windlass.core.moments import Micros
from windlass.store.clock import since_boot

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Read(msgspec.Struct, Generic[V], frozen=True, eq=False):
    at: Micros
    task: asyncio.Task[V]


class SharedReads(Generic[K, V]):
    """At most one read at a time for each key; requests that come meanwhile get its value or its error."""

    def __init__(self, fresh: Micros) -> None:
        """`fresh` is how long before a request a read may have begun that answers it."""
        self._fresh = fresh
        self._reads: dict[K, _Read[V]] = {}

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The value of the read in progress, or of a new one if that began too long ago.

        A request that is cancelled does not cancel the read, for which others may wait.
        """
        asked = since_boot()
        while True:
            found = self._reads.get(key)
            if found is None or found.task.done():  # `ended` runs in the loop's next iteration
                found = self._begin(key, read)
            value = await asyncio.shield(found.task)
            if found.at >= asked or since_boot() - found.at < self._fresh:
                return value

    async def stop(self) -> None:
        """Cancel all reads."""
        tasks = [each.task for each in self._reads.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> _Read[V]:
        # It belongs to no single request: a new context keeps it out of their traces.
        task = asyncio.get_running_loop().create_task(read(), context=Context())
        begun = self._reads[key] = _Read(since_boot(), task)

        def ended(task: asyncio.Task[V]) -> None:
            if self._reads.get(key) is begun:
                del self._reads[key]
            if not task.cancelled():
                task.exception()  # so that asyncio does not log it if no request waits any more

        task.add_done_callback(ended)
        return begun
