"""The wire to a cluster: each call goes to the server that has its queue, and follows the hash slot when that
moves.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
from redis.crc import key_slot
from redis.exceptions import AskError, AuthenticationError, ClusterDownError, MovedError
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import TimeoutError as TimedOut

from windlass.store.drive import running_loop
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.driver import Unsent, Word
from windlass.store.redis.connection.errors import DRIVER_ERRORS, is_lost, is_retryable, is_unsent
from windlass.store.redis.connection.wire import Call, RetryingWire, ServerWire

Node = tuple[str, int]

FIRST_PAUSE, MAX_PAUSE = 0.1, 2.0
PROBE_SECONDS = 1.0
"""Timeout in seconds of a PING to a node that was away."""


class _Absence(msgspec.Struct):
    pause: float
    probe_at: float


class AbsentNodes:
    """The nodes that did not answer the last call."""

    def __init__(self) -> None:
        self._nodes: dict[Node, _Absence] = {}

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    def note(self, node: Node) -> None:
        """The node did not answer."""
        known = self._nodes.get(node)
        pause = FIRST_PAUSE if known is None else min(2 * known.pause, MAX_PAUSE)
        self._nodes[node] = _Absence(pause, time.monotonic() + pause)

    def forget(self, node: Node) -> None:
        """It answered."""
        self._nodes.pop(node, None)

    def take_probe(self, node: Node) -> bool:
        """Whether the caller should probe it now; true for one caller at a time."""
        absence, now = self._nodes.get(node), time.monotonic()
        if absence is None or now < absence.probe_at:
            return False
        absence.probe_at = now + PROBE_SECONDS + absence.pause
        return True


MAP_SECONDS = 2.0
"""Timeout in seconds for reading the map of hash slots from a node."""
IMPATIENT_SECONDS = 3.0
"""Timeout in seconds of a call that is not patient."""


class ClusterWire(RetryingWire):
    """A wire to each node, and the map of hash slots to nodes."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._wires: dict[Node, ServerWire] = {}
        self._map: list[tuple[int, int, Node]] = []
        """First and last hash slot, and their node; empty: unknown or outdated."""
        self._away = AbsentNodes()
        self._probes: set[asyncio.Task[None]] = set()

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        """A call that is not patient does not wait for an absent node to return or be replaced."""
        return await super().calls(calls, seconds if patient else min(seconds, IMPATIENT_SECONDS), patient=patient)

    async def command(self, *words: Word, seconds: float, patient: bool = True) -> Any:
        seconds = seconds if patient else min(seconds, IMPATIENT_SECONDS)
        return await super().command(*words, seconds=seconds, patient=patient)

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        self._map = []
        await self._read_map(seconds)
        nodes = {node: None for _, _, node in self._map}
        return await _all([self._answer(node, words, seconds) for node in nodes])

    async def dsn_for(self, key: str, seconds: float) -> str:
        host, port = await self._owner(key, seconds)
        return self._address.at(host, port)

    async def close(self) -> None:
        for probe in list(self._probes):
            probe.cancel()
        for wire in self._wires.values():
            await wire.close()

    async def _answer(self, node: Node, words: tuple[Word, ...], seconds: float) -> Any:
        try:
            await self._check_reachable(node)
            return await self._wire_to(node).command(*words, seconds=seconds)
        except DRIVER_ERRORS as error:
            self._note_error(node, error)
            return error

    async def _try_calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Calls for one node are sent in one round trip."""
        replies: list[Any] = [None] * len(calls)
        indexes: dict[Node, list[int]] = defaultdict(list)
        for i, call in enumerate(calls):
            try:
                indexes[await self._owner(call.keys[0], seconds)].append(i)
            except DRIVER_ERRORS as error:
                replies[i] = error  # other calls may be executed
        trips = [self._send(node, [calls[i] for i in those], seconds) for node, those in indexes.items()]
        for (node, those), found in zip(indexes.items(), await _all(trips), strict=True):
            for i, answer in zip(those, found, strict=True):
                replies[i] = await self._redirected(calls[i], answer, node, seconds)
        return replies

    async def _try_command(self, words: tuple[Word, ...], seconds: float) -> Any:
        node = await self._owner(str(words[1]) if len(words) > 1 else "", seconds)
        reply = await self._redirected(words, await self._answer(node, words, seconds), node, seconds)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _send(self, node: Node, calls: Sequence[Call], seconds: float) -> list[Any]:
        try:
            await self._check_reachable(node)
            replies = await self._wire_to(node).calls(calls, seconds)
        except DRIVER_ERRORS as error:
            replies = [error] * len(calls)
        for reply in replies:
            if isinstance(reply, Exception):
                self._note_error(node, reply)
        return replies

    async def _check_reachable(self, node: Node) -> None:
        """Raise if the node is away; one caller at a time probes it."""
        if node not in self._away:
            return
        if self._away.take_probe(node):
            probe = self._probe(node)
            if running_loop() is None:
                await probe
            else:
                task = asyncio.create_task(probe)
                self._probes.add(task)
                task.add_done_callback(self._probes.discard)
        if node in self._away:
            raise Unsent(f"{node[0]}:{node[1]} does not answer")

    async def _probe(self, node: Node) -> None:
        """Ask an absent node again. The map is dropped: another node may have its hash slots by now."""
        self._map = []
        try:
            await self._wire_to(node).command("PING", seconds=PROBE_SECONDS)
        except (TimeoutError, *DRIVER_ERRORS) as error:
            if _is_unreachable(error):
                self._away.note(node)
                return
        self._away.forget(node)

    def _may_retry(self, reply: Any, patient: bool) -> bool:
        return is_retryable(reply) and (patient or not is_unsent(reply))

    async def _redirected(self, what: "Call | tuple[Word, ...]", reply: Any, node: Node, seconds: float) -> Any:
        """Follow ASK: a key of a migrating hash slot may be at the new node already. After MOVED the map is read
        again.
        """
        if isinstance(reply, MovedError):
            self._map = []
            with contextlib.suppress(*DRIVER_ERRORS):  # the map is read again by the next call
                await self._read_map(seconds, (reply.host or node[0], reply.port))
            return reply
        if not isinstance(reply, AskError):
            return reply
        wire = self._wire_to((reply.host or node[0], reply.port))
        try:
            if isinstance(what, Call):
                return (await wire.replicated([("ASKING",), what.by_text], seconds))[1]
            return (await wire.pipelined([("ASKING",), what], seconds))[1]
        except DRIVER_ERRORS as error:
            return error

    def _note_error(self, node: Node, error: Exception) -> None:
        if _is_unreachable(error) and node not in self._away:
            self._away.note(node)
        if is_lost(error):
            self._map = []

    def _wire_to(self, node: Node) -> ServerWire:
        if node not in self._wires:
            self._wires[node] = ServerWire(self._address.at(*node), self._address.replicas)
        return self._wires[node]

    async def _owner(self, key: str, seconds: float) -> Node:
        await self._read_map(seconds)
        slot = key_slot(key.encode())
        for first, last, node in self._map:
            if first <= slot <= last:
                return node
        self._map = []
        raise ClusterDownError(f"CLUSTERDOWN no node has slot {slot}")

    async def _read_map(self, seconds: float, first: Node | None = None) -> None:
        """Read the map of hash slots from the first known or named node that sends it."""
        if self._map:
            return
        trouble: Exception | None = None
        known = dict.fromkeys([*([first] if first else []), *self._wires, *self._address.hosts])
        for node in sorted(known, key=self._away.__contains__):
            try:
                slots = await self._wire_to(node).command("CLUSTER", "SLOTS", seconds=min(seconds, MAP_SECONDS))
            except DRIVER_ERRORS as error:
                self._note_error(node, error)
                trouble = error
                continue
            if slots:
                self._map = [(start, end, _node(master, node)) for start, end, master, *_ in slots]
                return
        raise trouble or ClusterDownError("CLUSTERDOWN the nodes have no slots")


def _is_unreachable(error: Exception) -> bool:
    """Whether the node was not reached or did not answer in time, rather than closed one connection."""
    if isinstance(error, AuthenticationError):
        return False
    return isinstance(error, TimeoutError) or (
        is_unsent(error) and isinstance(error, Disconnected | TimedOut | OSError)
    )


def _node(master: Sequence[Any], asked: Node) -> Node:
    """A node that reports no host is at the address that was asked."""
    host = master[0].decode() if isinstance(master[0], bytes) else master[0]
    return host or asked[0], int(master[1])


async def _all(trips: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Concurrently on a loop; without one, one after the other."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return [await trip for trip in trips]
    return list(await asyncio.gather(*trips))
