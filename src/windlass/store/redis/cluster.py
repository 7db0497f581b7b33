"""The wire to a cluster: each call goes to the server that has its queue, and follows the slot when that moves."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any

from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError

from windlass.store.redis.address import Address
from windlass.store.redis.packing import Word
from windlass.store.redis.patience import Patience
from windlass.store.redis.trouble import TROUBLE, is_lost, is_undone
from windlass.store.redis.wire import Call, Line

ASKING = 2.0
"""Seconds that a node has to tell the map."""
Node = tuple[str, int]


class ClusterWire:
    """A line to each node, and the map that says which node has which slot."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lines: dict[Node, Line] = {}
        self._map: list[tuple[int, int, Node]] = []
        """First and last slot, and who has them; empty: not known, or not believed any more."""

    async def call(self, call: Call, seconds: float) -> Any:
        (reply,) = await self.calls([call], seconds)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Those for one node go together; those that were refused because they belong elsewhere, once more."""
        replies: list[Any] = [None] * len(calls)
        left = list(range(len(calls)))
        patience = Patience(seconds)
        while left:
            places: dict[Node, list[int]] = defaultdict(list)
            for i in left:
                places[await self._owner(calls[i].keys[0], seconds)].append(i)
            trips = [self._trip(node, [calls[i] for i in those], seconds) for node, those in places.items()]
            for (node, those), answers in zip(places.items(), await _all(trips), strict=True):
                for i, answer in zip(those, answers, strict=True):
                    replies[i] = await self._sent_on(calls[i], answer, node, seconds)
            left = [i for i in left if is_undone(replies[i])]
            if left and not await patience.pause(at_once=any(isinstance(replies[i], MovedError) for i in left)):
                break
        return replies

    async def command(self, *words: Word, seconds: float) -> Any:
        key = str(words[1]) if len(words) > 1 else ""
        patience = Patience(seconds)
        while True:
            node = await self._owner(key, seconds)
            try:
                return await self._line(node).command(*words, seconds=seconds)
            except AskError as error:
                moved = await self._sent_on(words, error, node, seconds)
                if not isinstance(moved, Exception):
                    return moved
                if not await patience.pause(at_once=isinstance(moved, MovedError)):
                    raise
            except TROUBLE as error:
                self._notice(error)
                if not is_undone(error) or not await patience.pause():
                    raise

    async def each(self, *words: Word, seconds: float) -> list[Any]:
        self._map = []
        await self._learn(seconds)
        nodes = {node: None for _, _, node in self._map}
        return await _all([self._answer(node, words, seconds) for node in nodes])

    async def dsn_for(self, key: str, seconds: float) -> str:
        host, port = await self._owner(key, seconds)
        return self._address.at(host, port)

    async def close(self) -> None:
        for line in self._lines.values():
            await line.close()

    async def _answer(self, node: Node, words: tuple[Word, ...], seconds: float) -> Any:
        try:
            return await self._line(node).command(*words, seconds=seconds)
        except TROUBLE as error:
            return error

    async def _trip(self, node: Node, calls: Sequence[Call], seconds: float) -> list[Any]:
        try:
            replies = await self._line(node).calls(calls, seconds)
        except TROUBLE as error:
            replies = [error] * len(calls)
        for reply in replies:
            if isinstance(reply, Exception):
                self._notice(reply)
        return replies

    async def _sent_on(self, what: "Call | tuple[Word, ...]", reply: Any, node: Node, seconds: float) -> Any:
        """Half of a slot that moves is at its new place already: that one is asked for this once."""
        if isinstance(reply, MovedError):
            self._map = []
            await self._learn(seconds, (reply.host or node[0], reply.port))
            return reply
        if not isinstance(reply, AskError):
            return reply
        line = self._line((reply.host or node[0], reply.port))
        try:
            if isinstance(what, Call):
                return (await line.replicated([("ASKING",), what.by_text], seconds))[1]
            return (await line.pipelined([("ASKING",), what], seconds))[1]
        except TROUBLE as error:
            return error

    def _notice(self, error: Exception) -> None:
        if is_lost(error):
            self._map = []

    def _line(self, node: Node) -> Line:
        if node not in self._lines:
            self._lines[node] = Line(self._address.at(*node), self._address.replicas)
        return self._lines[node]

    async def _owner(self, key: str, seconds: float) -> Node:
        await self._learn(seconds)
        slot = key_slot(key.encode())
        for first, last, node in self._map:
            if first <= slot <= last:
                return node
        self._map = []
        raise ClusterDownError(f"CLUSTERDOWN nobody has slot {slot}")

    async def _learn(self, seconds: float, first: Node | None = None) -> None:
        """Ask for the map, of those who are known and those who are named, until one tells it."""
        if self._map:
            return
        trouble: Exception | None = None
        for node in dict.fromkeys([*([first] if first else []), *self._lines, *self._address.hosts]):
            try:
                slots = await self._line(node).command("CLUSTER", "SLOTS", seconds=min(seconds, ASKING))
            except TROUBLE as error:
                trouble = error
                continue
            if slots:
                self._map = [(start, end, _node(master, node)) for start, end, master, *_ in slots]
                return
        raise trouble or ClusterDownError("CLUSTERDOWN the nodes have no slots")


def _node(master: Sequence[Any], asked: Node) -> Node:
    """A node that does not know its own name is where it was asked."""
    host = master[0].decode() if isinstance(master[0], bytes) else master[0]
    return host or asked[0], int(master[1])


async def _all(trips: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """At once where there is a loop; without one nothing may be waited for but by waiting."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return [await trip for trip in trips]
    return list(await asyncio.gather(*trips))
