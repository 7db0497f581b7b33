"""Callers who have a connection of their own: one class for each kind that `using(connection=...)` takes.

Those that block live in a thread of their own without an event loop, as in a web server; the others on the loop of
the test.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from windlass import App
from windlass.core.jobs.job import NewJob


class Caller(Protocol):
    """A caller with a transaction."""

    @property
    def retried(self) -> tuple[type[Exception], ...]:
        """What code around this library looks for before it runs a transaction again."""

    async def open(self, url: str, *, autocommit: bool = False) -> None: ...
    async def execute(self, statement: str) -> None: ...
    async def enqueue(self, task: Any, number: int) -> Any: ...
    async def enqueue_many(self, app: App, jobs: Iterable[NewJob]) -> list[Any]: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def close(self) -> None: ...


class Blocking:
    """The common part of those that block; what they do is done in one thread."""

    connection: Any
    retried: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    async def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *args, **kwargs))

    async def open(self, url: str, *, autocommit: bool = False) -> None:
        await self.call(self._open, url, autocommit)

    async def execute(self, statement: str) -> None:
        await self.call(self._execute, statement)

    async def enqueue(self, task: Any, number: int) -> Any:
        return await self.call(task.using(connection=self.connection).enqueue, number)

    async def enqueue_many(self, app: App, jobs: Iterable[NewJob]) -> list[Any]:
        handles: list[Any] = await self.call(app.enqueue_many, jobs, connection=self.connection)
        return handles

    async def commit(self) -> None:
        await self.call(self.connection.commit)

    async def rollback(self) -> None:
        await self.call(self.connection.rollback)

    async def close(self) -> None:
        await self.call(self._close)
        self._thread.shutdown()

    def _open(self, url: str, autocommit: bool) -> None:
        raise NotImplementedError

    def _execute(self, statement: str) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        self.connection.close()


class OnLoop:
    """The common part of those that do not block."""

    connection: Any
    retried: tuple[type[Exception], ...] = ()

    async def enqueue(self, task: Any, number: int) -> Any:
        return await task.using(connection=self.connection).aenqueue(number)

    async def enqueue_many(self, app: App, jobs: Iterable[NewJob]) -> list[Any]:
        return await app.aenqueue_many(jobs, connection=self.connection)

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()
