"""Hearing: a subscription to what is said of some queues. One that is lost is noticed, and made again."""

import asyncio
from collections.abc import Callable, Sequence

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff

from windlass.store.redis.access import Server
from windlass.store.redis.trouble import TROUBLE, said_by

PROBE_SECONDS = 5.0
"""After so long without a word it is seen whether the line is there still."""
PATIENCE_SECONDS = 2.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


class Hearing:
    """Calls `hear` for everything that is said, and once when it begins to listen: something may have been missed."""

    def __init__(self, server: Server, queues: tuple[str, ...], hear: Callable[[], None]) -> None:
        self._server = server
        self._channels = [server.keys.channel(queue) for queue in queues]
        self._hear = hear
        self._pause = FIRST_PAUSE
        self.silence: str | None = None
        """Why nothing is heard; None: it is, or it was not tried yet."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._listen()
            except (*TROUBLE, TimeoutError) as error:
                self.silence = f"the subscription is lost: {said_by(error)}"
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    async def _listen(self) -> None:
        """On a connection of its own, until it is lost. A master that is none any more is found out here too."""
        connection = await self._connection()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await connection.connect()
                await connection.send_command("SUBSCRIBE", *self._channels)
                for _ in self._channels:
                    await connection.read_response()
            self.silence, self._pause = None, FIRST_PAUSE
            self._hear()
            while True:
                if (await _next(connection))[0] == b"message":
                    self._hear()
        finally:
            await connection.disconnect(nowait=True)

    async def _connection(self) -> AbstractConnection:
        dsn = await self._server.wire.dsn_for(self._channels[0], PATIENCE_SECONDS)
        retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
        # In the older protocol what is published comes as answers do.
        pool = redis.asyncio.ConnectionPool.from_url(dsn, retry=retry, socket_timeout=None, protocol=2)
        connection: AbstractConnection = pool.make_connection()
        return connection


async def _next(connection: AbstractConnection) -> Sequence[bytes]:
    """What is said next; raises TimeoutError if nothing is, although a word was asked for."""
    word = await connection.read_response(timeout=PROBE_SECONDS, disconnect_on_error=False)
    if word is None:
        await connection.send_command("PING")
        word = await connection.read_response(timeout=PATIENCE_SECONDS, disconnect_on_error=False)
        if word is None:
            raise TimeoutError
    found: Sequence[bytes] = word
    return found
