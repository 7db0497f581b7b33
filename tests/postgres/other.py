"""Another process at work in the same database, one statement at a time."""

import asyncio
from typing import Any

import psycopg

_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ANY (%s::integer[])"
_PIDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> ALL (%s::integer[])"


class Other:
    """A transaction of another session, and a look at the sessions that wait for it."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], watcher: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._watcher = watcher

    async def does(self, text: str, *values: object) -> list[Any]:
        """A statement; nothing is committed yet."""
        cursor = await self._connection.execute(text, values)
        return await cursor.fetchall() if cursor.description else []

    async def commits(self) -> None:
        """Now it counts."""
        await self._connection.commit()

    async def is_waited_for(self, by: int = 1) -> None:
        """Return when this many sessions wait for locks in this database."""
        ours = [self._connection.info.backend_pid, self._watcher.info.backend_pid]
        while True:
            pids = [row[0] for row in await self._rows(_PIDS, ours)]
            if (await self._rows(_WAITING, pids))[0][0] >= by:
                return
            await asyncio.sleep(0.01)

    async def _rows(self, text: str, value: object) -> list[Any]:
        return await (await self._watcher.execute(text, [value])).fetchall()
