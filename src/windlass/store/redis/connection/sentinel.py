"""The wire to the master of a service: Sentinels name it, and are asked again when it is lost."""

from collections.abc import Sequence
from typing import Any

from redis.exceptions import ConnectionError as Disconnected

from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.errors import DRIVER_ERRORS, is_lost, message_of
from windlass.store.redis.connection.wire import Call, RetryingWire, ServerWire

SENTINEL_SECONDS = 2.0
"""Timeout in seconds for one Sentinel."""


class SentinelWire(RetryingWire):
    """One wire at a time, to the master that the Sentinels name."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sentinels = [ServerWire(address.sentinel(host, port)) for host, port in address.hosts]
        self._wires: dict[str, ServerWire] = {}
        self._master: str | None = None

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        self._master = None
        return [await self.command(*words, seconds=seconds)]

    async def dsn_for(self, key: str, seconds: float) -> str:
        return await self._master_dsn(seconds)

    async def close(self) -> None:
        for wire in (*self._sentinels, *self._wires.values()):
            await wire.close()

    async def _try_calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        try:
            replies = await (await self._wire_to_master(seconds)).calls(calls, seconds)
        except DRIVER_ERRORS as error:
            replies = [error] * len(calls)
        for reply in replies:
            self._note_error(reply)
        return replies

    async def _try_command(self, words: tuple[Word, ...], seconds: float) -> Any:
        try:
            return await (await self._wire_to_master(seconds)).command(*words, seconds=seconds)
        except DRIVER_ERRORS as error:
            self._note_error(error)
            raise

    def _note_error(self, reply: Any) -> None:
        if isinstance(reply, Exception) and is_lost(reply):
            self._master = None

    async def _wire_to_master(self, seconds: float) -> ServerWire:
        dsn = await self._master_dsn(seconds)
        if dsn not in self._wires:
            self._wires[dsn] = ServerWire(dsn, self._address.replicas)
        return self._wires[dsn]

    async def _master_dsn(self, seconds: float) -> str:
        """The address of the master, from the first Sentinel that knows it, which is asked first from then on."""
        if self._master is not None:
            return self._master
        service, problem = self._address.service, "no Sentinel answers"
        for wire in list(self._sentinels):
            try:
                found = await wire.command(
                    "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service, seconds=min(seconds, SENTINEL_SECONDS)
                )
            except DRIVER_ERRORS as error:
                problem = message_of(error)
                continue
            if found is None:
                problem = f"the Sentinels do not know service {service!r}"
                continue
            self._sentinels.remove(wire)
            self._sentinels.insert(0, wire)
            self._master = self._address.at(found[0].decode(), int(found[1]))
            return self._master
        raise Disconnected(f"connecting to the master of {service!r}: {problem}")
