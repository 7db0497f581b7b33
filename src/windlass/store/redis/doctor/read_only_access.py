"""Access for the doctor: it creates neither a store nor a queue."""

import contextlib
from typing import Any

from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import MAX_CALL, Access
from windlass.store.redis.connection.errors import translate
from windlass.store.redis.connection.inspection import Rights, ask_rights
from windlass.store.redis.connection.server import Server
from windlass.store.redis.doctor.server import SETTINGS, Info
from windlass.store.redis.records.migrate import VERSION_FIELDS, MapVersion, read_version
from windlass.store.redis.records.queue_settings import READ
from windlass.store.redis.scripts.loader import script


class ReadOnlyAccess(Access):
    """Access that writes nothing."""

    def __init__(self, server: Server) -> None:
        super().__init__(server, MAX_CALL)
        self.lost: list[str] = []
        """Names of queues whose keys are missing or belong to another store."""

    async def ensure_open(self) -> None:
        """No-op: `identify` was called before, or there is no store."""

    async def infos(self) -> list[Info]:
        """INFO of each master, with settings that it lacks."""
        found = [_parsed(reply) for reply in await self._each("INFO")]
        for name in SETTINGS:
            with contextlib.suppress(StoreUnavailable):  # this user may not be allowed to read it
                for info, reply in zip(found, await self._each("CONFIG", "GET", name), strict=True):
                    words = next(iter(reply.items())) if reply and isinstance(reply, dict) else reply
                    if len(words) == 2:
                        info.setdefault(name, words[1].decode())
        return found

    async def _each(self, *words: str) -> list[Any]:
        """Send a command to every server; raises the first error."""
        replies: list[Any] = await self._translated(self.server.wire.each(*words, seconds=self.seconds))
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate(reply, self.server.shown) from reply
        return replies

    async def rights(self) -> Rights:
        """What this user may do at each server."""
        return await ask_rights(self.server, self.seconds)

    async def identify(self) -> MapVersion | None:
        """Read the id of the store: the version of its key map, or None if there is no store."""
        (key,) = self.server.keys.global_keys(("meta",))
        store_id, *version = await self._command("HMGET", key, "store", *VERSION_FIELDS)
        if store_id is None:
            return None
        self.server.store_id = store_id.decode()
        return read_version(*version)

    async def queue_names(self) -> list[str]:
        """Existing queues; the others are in `lost`."""
        names = await super().queue_names()
        replies = await self._send(script("read_queue"), dict.fromkeys(names, (READ,))) if names else {}
        self.lost = [name for name, reply in replies.items() if isinstance(reply, Exception)]
        return [name for name in names if name not in self.lost]


def _parsed(info: bytes) -> Info:
    """The reply to INFO: a line for each field, and headings."""
    lines = [line.partition(":") for line in info.decode().splitlines()]
    return {name: value for name, colon, value in lines if colon}
