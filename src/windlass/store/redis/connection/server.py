"""One store, as a process reaches it: what all of its users share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from windlass.store.clock import Clock
from windlass.store.redis.connection.address import Address, Kind
from windlass.store.redis.connection.cluster import ClusterWire
from windlass.store.redis.connection.failpoints import armed_wire
from windlass.store.redis.connection.sentinel import SentinelWire
from windlass.store.redis.connection.server_watch import ServerWatch
from windlass.store.redis.connection.wire import Call, ServerWire, Wire
from windlass.store.redis.records.job_locations import JobLocations
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.scripts.loader import Script, script
from windlass.store.redis.verbs.claim_memory import ClaimMemory

MAX_NAMED = 5_000
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
        self.failpoint_wire = armed_wire(wire_to(address))
        """The wire with failpoints, in tests only."""
        self.wire: Wire = self.failpoint_wire or wire_to(address)
        self.watch = ServerWatch(address, shown)
        self.asked_queues: set[str] = set()
        """Queues that were asked for anything."""
        self.known_queues: set[str] = set()
        """Queues that have replied: one that is missing later was lost, and is not new."""
        self.store_id: str | None = None
        """Which store this is, since the first call."""
        self.applied: list[str] = []
        self.job_locations = JobLocations()
        self.claim_memory = ClaimMemory()
        self.closed = False
        self.script_stopped = False
        """Whether a script may have stopped half-way since the coordinator looked last (repair.py)."""
        self.on_enqueue: Callable[[], None] = lambda: None
        """Wakes waiters of this process after an enqueue."""
        self._named: dict[tuple[str, str], Sequence[str]] = {}

    def with_failpoints(self, role: Role) -> Role:
        """The role itself; with failpoints, one whose verbs set the failpoint's name."""
        return role if self.failpoint_wire is None else self.failpoint_wire.named(role)

    def script(self, name: str) -> Script:
        """The verb's script, as it is for this kind of server."""
        return script(name, clustered=self.address.kind is Kind.CLUSTER)

    def clock_argument(self) -> str:
        """The moment of a test's clock; empty: the server's own."""
        return "" if self.clock is None else str(self.clock.wall())

    def to_call(self, script: Script, queue: str, request: Any, blobs: Sequence[bytes]) -> Call:
        """The call of a script for one queue; refused if it takes jobs in and there is no room for them."""
        keys = self._named.get((script.name, queue))
        if keys is None:
            keys = self._name(script, queue)
        self.asked_queues.add(queue)
        call = Call(script, keys, (self.store_id or "", self.clock_argument(), _encode(request), *blobs))
        if script.grows:
            self.watch.check_room(call.size)
        return call

    def _name(self, script: Script, queue: str) -> Sequence[str]:
        """The keys of a script, remembered: they are asked for with every call."""
        keys = self.keys.global_keys(script.keys) if script.is_global else self.keys.of_queue(queue, script.keys)
        if len(self._named) >= MAX_NAMED:
            self._named.clear()
        self._named[script.name, queue] = keys
        return keys


def wire_to(address: Address) -> Wire:
    """Nothing is connected yet."""
    match address.kind:
        case Kind.SERVER:
            return ServerWire(address.dsn, address.replicas)
        case Kind.SENTINEL:
            return SentinelWire(address)
        case Kind.CLUSTER:
            return ClusterWire(address)
