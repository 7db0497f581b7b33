"""Reads that are repeated one by one after a conflict, because each has its own snapshot anyway."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncpg

from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.db import Statement, numbered
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import is_conflict

T = TypeVar("T")

MAX_TRIES = 20
MAX_PAUSE = 0.1
"""The longest pause before a retry, in seconds."""


async def repeat(call: Callable[[], Awaitable[T]], conflicts: Conflicts) -> T:
    """Make a call, and repeat it while it did nothing because of a conflict."""
    for attempt in range(1, MAX_TRIES):
        try:
            return await call()
        except asyncpg.PostgresError as error:
            if not is_conflict(error):
                raise
            conflicts.add()
        await pause(attempt)
    return await call()


async def pause(attempt: int) -> None:
    """Wait before the next try, with jitter, so that others with the same conflict do not retry at the same time."""
    await asyncio.sleep(random.uniform(0, min(MAX_PAUSE, 0.005 * attempt)))


class RepeatedReads:
    """A session that repeats each read by itself: a call of many reads need not start again after each conflict."""

    prepare = staticmethod(numbered)

    def __init__(self, session: Session, conflicts: Conflicts) -> None:
        self._session = session
        self._conflicts = conflicts

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a statement."""
        if self._session.in_transaction:
            return await self._session.rows(statement, values)
        return await repeat(lambda: self._session.rows(statement, values), self._conflicts)

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute; how many rows it changed."""
        return await self._session.run(statement, values)
