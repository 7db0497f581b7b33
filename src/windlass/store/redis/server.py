"""One store, as a process reaches it: what all of its users share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from windlass.store.clock import Clock
from windlass.store.redis.address import Address, Kind
from windlass.store.redis.failpoints import armed_wire
from windlass.store.redis.keys import KeyMap
from windlass.store.redis.recall import Recall
from windlass.store.redis.script import Script, script
from windlass.store.redis.seen import Seen
from windlass.store.redis.watch import Watch
from windlass.store.redis.wire import Call, Wire
from windlass.store.redis.wires import wire_to

MOST_NAMED = 5_000
"""Lists of keys that are remembered: queues can be many."""

Role = TypeVar("Role")
_encode = msgspec.msgpack.Encoder().encode


class Server:
    """One store on one server or cluster, as this process reaches it."""

    def __init__(self, address: Address, shown: str, clock: Clock | None) -> None:
        self.address = address
        self.shown = shown
        self.clock = clock
        self.keys = KeyMap(address.prefix)
        self.watched = armed_wire(wire_to(address))
        """What a test lets go wrong; nobody else's business."""
        self.wire: Wire = self.watched or wire_to(address)
        self.watch = Watch(address, shown)
        self.named: set[str] = set()
        """Queues that were asked for anything."""
        self.there: set[str] = set()
        """Queues that have answered: one that is gone was lost, and is not new."""
        self.mark: str | None = None
        """Which store this is, since the first call."""
        self.applied: list[str] = []
        self.seen = Seen()
        self.recall = Recall()
        self.closed = False
        self.hear: Callable[[], None] = lambda: None
        """Those who wait in this process may look."""
        self._named: dict[tuple[str, str], Sequence[str]] = {}

    def named_role(self, role: Role) -> Role:
        """The role itself; where a test lets things go wrong, one whose verbs say what they are."""
        return role if self.watched is None else self.watched.named(role)

    def script(self, name: str) -> Script:
        """The verb's script, as it is for this kind of server."""
        return script(name, clustered=self.address.kind is Kind.CLUSTER)

    def moment(self) -> str:
        """The moment of a test's clock; empty: the server's own."""
        return "" if self.clock is None else str(self.clock.wall())

    def to_call(self, script: Script, queue: str, request: Any, blobs: Sequence[bytes]) -> Call:
        """The call of a script for one queue; refused if it takes jobs in and there is no room for them."""
        keys = self._named.get((script.name, queue))
        if keys is None:
            keys = self._name(script, queue)
        self.named.add(queue)
        call = Call(script, keys, (self.mark or "", self.moment(), _encode(request), *blobs))
        if script.grows:
            self.watch.check_room(call.size)
        return call

    def _name(self, script: Script, queue: str) -> Sequence[str]:
        """The keys of a script, remembered: they are asked for with every call."""
        keys = self.keys.of_office(script.keys) if script.office else self.keys.of_queue(queue, script.keys)
        if len(self._named) >= MOST_NAMED:
            self._named.clear()
        self._named[script.name, queue] = keys
        return keys
