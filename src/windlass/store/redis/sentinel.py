"""The wire to the master of a service, whoever that is: Sentinels tell, and are asked again when it is lost."""

from collections.abc import Sequence
from typing import Any

from redis.exceptions import ConnectionError as Disconnected

from windlass.store.redis.address import Address
from windlass.store.redis.packing import Word
from windlass.store.redis.patience import Patience
from windlass.store.redis.trouble import TROUBLE, is_lost, is_undone, said_by
from windlass.store.redis.wire import Call, Line

ASKING = 2.0
"""Seconds that one Sentinel has to answer."""


class SentinelWire:
    """One line at a time, to whom the Sentinels call master."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sentinels = [Line(address.sentinel(host, port)) for host, port in address.hosts]
        self._lines: dict[str, Line] = {}
        self._master: str | None = None

    async def call(self, call: Call, seconds: float) -> Any:
        (reply,) = await self.calls([call], seconds)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        replies: list[Any] = [None] * len(calls)
        left = list(range(len(calls)))
        patience = Patience(seconds)
        while left:
            answers = await self._tried([calls[i] for i in left], seconds)
            for i, answer in zip(left, answers, strict=True):
                replies[i] = answer
            left = [i for i in left if is_undone(replies[i])]
            if left and not await patience.pause():
                break
        return replies

    async def command(self, *words: Word, seconds: float) -> Any:
        patience = Patience(seconds)
        while True:
            try:
                return await (await self._line(seconds)).command(*words, seconds=seconds)
            except TROUBLE as error:
                self._notice(error)
                if not is_undone(error) or not await patience.pause():
                    raise

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        self._master = None
        return [await self.command(*words, seconds=seconds)]

    async def dsn_for(self, key: str, seconds: float) -> str:
        return await self._who(seconds)

    async def close(self) -> None:
        for line in (*self._sentinels, *self._lines.values()):
            await line.close()

    async def _tried(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        try:
            line = await self._line(seconds)
            replies = await line.calls(calls, seconds)
        except TROUBLE as error:
            replies = [error] * len(calls)
        for reply in replies:
            if isinstance(reply, Exception):
                self._notice(reply)
        return replies

    def _notice(self, error: Exception) -> None:
        if is_lost(error):
            self._master = None

    async def _line(self, seconds: float) -> Line:
        dsn = await self._who(seconds)
        if dsn not in self._lines:
            self._lines[dsn] = Line(dsn, self._address.replicas)
        return self._lines[dsn]

    async def _who(self, seconds: float) -> str:
        """The master's address: the first Sentinel that knows one is believed, and asked first from then on."""
        if self._master is not None:
            return self._master
        service, said = self._address.service, "no Sentinel answers"
        for line in list(self._sentinels):
            try:
                found = await line.command(
                    "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service, seconds=min(seconds, ASKING)
                )
            except TROUBLE as error:
                said = said_by(error)
                continue
            if found is None:
                said = f"the Sentinels know no service {service!r}"
                continue
            self._sentinels.remove(line)
            self._sentinels.insert(0, line)
            self._master = self._address.at(found[0].decode(), int(found[1]))
            return self._master
        raise Disconnected(f"connecting to the master of {service!r}: {said}")
