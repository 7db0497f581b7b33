"""Access for who only looks: it makes neither a store nor a queue."""

import contextlib

from windlass.errors import StoreUnavailable
from windlass.store.redis.access import LONGEST_CALL, Access, Server
from windlass.store.redis.examination.server import SETTINGS, Info
from windlass.store.redis.script import script
from windlass.store.redis.settings import READ
from windlass.store.redis.trouble import TROUBLE, translate


class Onlooker(Access):
    """The server, as an examination sees it."""

    def __init__(self, server: Server) -> None:
        super().__init__(server, LONGEST_CALL)
        self.lost: list[str] = []
        """Queues that are named, and are not there or of another store."""

    async def be_known(self) -> None:
        """Which store it is was looked up before, or there is none."""

    async def infos(self) -> list[Info]:
        """What each server that is written to says of itself."""
        try:
            found: list[Info] = await self.server.wire.each("INFO", seconds=self.seconds)
        except TimeoutError as error:
            raise StoreUnavailable(f"{self.server.shown}: no answer within {self.seconds:g} s") from error
        except TROUBLE as error:
            raise translate(error, self.server.shown) from error
        for name in SETTINGS:
            with contextlib.suppress(*TROUBLE):  # not everybody may know
                settings = await self.server.wire.each("CONFIG GET", name, seconds=self.seconds)
                for info, setting in zip(found, settings, strict=False):
                    if name in setting:
                        info.setdefault(name, setting[name])
        return found

    async def identify(self) -> int | None:
        """Learn which store this is: the version of its key map, or None if there is none."""
        (key,) = self.server.keys.of_office(("meta",))
        mark, version = await self._command("HMGET", key, "store", "version")
        if mark is None:
            return None
        self.server.mark = mark.decode()
        return int(version or 1)

    async def queue_names(self) -> list[str]:
        """Those that are there."""
        names = await super().queue_names()
        replies = await self._send(script("look_queue"), dict.fromkeys(names, (READ,))) if names else {}
        self.lost = [name for name, reply in replies.items() if isinstance(reply, Exception)]
        return [name for name in names if name not in self.lost]
