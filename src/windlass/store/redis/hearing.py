"""Hearing: a subscription to what is said of some queues. One that is lost is noticed, and made again."""

import asyncio
from collections.abc import Callable
from typing import Any

import redis.asyncio
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
        async with asyncio.timeout(PATIENCE_SECONDS):
            dsn = await self._server.wire.dsn_for(self._channels[0], PATIENCE_SECONDS)
        retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
        client = redis.asyncio.Redis.from_url(dsn, retry=retry, socket_connect_timeout=PATIENCE_SECONDS)
        line = client.pubsub()
        try:
            await self._subscribe(line)
            self.silence, self._pause = None, FIRST_PAUSE
            self._hear()
            while True:
                if await self._next(line) == "message":
                    self._hear()
        finally:
            await line.aclose()
            await client.aclose()

    async def _subscribe(self, line: Any) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await line.subscribe(*self._channels)
            for _ in self._channels:
                await line.get_message(timeout=PATIENCE_SECONDS)

    async def _next(self, line: Any) -> str:
        """What kind of word comes next; raises TimeoutError if none does although one was asked for."""
        word = await line.get_message(timeout=PROBE_SECONDS)
        if word is None:
            await line.ping()
            word = await line.get_message(timeout=PATIENCE_SECONDS)
            if word is None:
                raise TimeoutError
        kind: str = word["type"]
        return kind
