"""One store in one process: what all of its users share."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, TypeVar

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import Clock, since_boot
from windlass.store.redis.connection.address import Address, Kind
from windlass.store.redis.connection.cluster import ClusterWire
from windlass.store.redis.connection.failpoints import armed_wire
from windlass.store.redis.connection.sentinel import SentinelWire
from windlass.store.redis.connection.server_watch import ServerWatch
from windlass.store.redis.connection.wire import Call, ServerWire, Wire
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.scripts.loader import Script, script
from windlass.store.waits import RateWaits

MAX_REMEMBERED = 10_000
MAX_AT_ONCE = 1_000
"""Larger batches are not remembered."""


class JobLocations:
    """The queues of jobs that this process enqueued or read; a job may have moved or been dropped since."""

    def __init__(self) -> None:
        self._queues: OrderedDict[JobId, str] = OrderedDict()
        self._lock = Lock()

    def note(self, queue: str, ids: Sequence[JobId]) -> None:
        """These jobs are in this queue. Beyond MAX_REMEMBERED the oldest are forgotten."""
        if len(ids) > MAX_AT_ONCE:
            return
        with self._lock:
            for id_ in ids:
                self._queues[id_] = queue
            while len(self._queues) > MAX_REMEMBERED:
                self._queues.popitem(last=False)

    def by_queue(self, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
        """The ids whose queues are remembered, by queue."""
        found: dict[str, list[JobId]] = defaultdict(list)
        for id_ in ids:
            queue = self._queues.get(id_)
            if queue is not None:
                found[queue].append(id_)
        return found


MAX_RUNNERS = 1000
LIMITED_FOR: Micros = SECOND
"""How long a queue counts as limited after it was found to be."""


class ClaimMemory:
    """Which queues are limited, when they have tokens again, and the last claim of each runner."""

    def __init__(self) -> None:
        self.rate_waits = RateWaits()
        self._limited_until: dict[str, Micros] = {}
        self._asked: dict[str, int] = {}
        self.token_bucket_cursors: dict[str, str] = {}
        """Where the next look at the token buckets of a queue continues."""

    def is_limited(self, queue: str) -> bool:
        """Whether it was found limited within LIMITED_FOR."""
        until = self._limited_until.get(queue)
        return until is not None and since_boot() < until

    def note_limited(self, queue: str) -> None:
        """The queue is limited."""
        self._limited_until[queue] = since_boot() + LIMITED_FOR

    def is_new(self, runner: str, claim: int) -> bool:
        """Whether the claim has a higher number than all before; without a claim before, that is unknown: False."""
        before = self._asked.get(runner)
        if len(self._asked) > MAX_RUNNERS:
            self._asked.clear()
        self._asked[runner] = claim if before is None else max(claim, before)
        return before is not None and claim > before


MAX_NAMED = 5_000
"""Lists of keys that are remembered: queues can be many."""

Role = TypeVar("Role")
_encode = msgspec.msgpack.Encoder().encode


class Server:
    """One store on one server or cluster."""

    def __init__(self, address: Address, shown: str, clock: Clock | None) -> None:
        self.address = address
        self.shown = shown
        self.clock = clock
        self.keys = KeyMap(address.prefix)
        self.failpoint_wire = armed_wire(wire_to(address))
        """The wire with failpoints, in tests only."""
        self.wire: Wire = self.failpoint_wire or wire_to(address)
        self.watch = ServerWatch(address, shown)
        self._clustered = address.kind is Kind.CLUSTER
        self.asked_queues: set[str] = set()
        """Queues for which this process has called a script."""
        self.known_queues: set[str] = set()
        """Queues that have replied: one that is missing later was lost, and is not new."""
        self.store_id: str | None = None
        """The id of the store; None before the first call."""
        self.applied: list[str] = []
        self.job_locations = JobLocations()
        self.claim_memory = ClaimMemory()
        self.closed = False
        self.script_stopped = False
        """Whether a script may have stopped half-way since the last check (tidy.py)."""
        self.on_enqueue: Callable[[], None] = lambda: None
        """Wakes waiters of this process after an enqueue."""
        self._named: dict[tuple[str, str], Sequence[str]] = {}

    def with_failpoints(self, role: Role) -> Role:
        """The role itself; with failpoints, one whose verbs set the failpoint's name."""
        return role if self.failpoint_wire is None else self.failpoint_wire.named(role)

    def script(self, name: str) -> Script:
        """The script of this name, for a cluster or a single server."""
        return script(name, clustered=self._clustered)

    def clock_argument(self) -> str:
        """The moment of a test's clock; empty: the server's own."""
        return "" if self.clock is None else str(self.clock.wall())

    def to_call(self, script: Script, queue: str, request: Any, blobs: Sequence[bytes]) -> Call:
        """The call of a script for one queue; refused if it stores jobs and memory is nearly full."""
        keys = self._named.get((script.name, queue))
        if keys is None:
            keys = self._name(script, queue)
        self.asked_queues.add(queue)
        call = Call(script, keys, (self.store_id or "", self.clock_argument(), _encode(request), *blobs))
        if script.grows and self.watch.has_limit:
            self.watch.check_room(call.size)
        return call

    def _name(self, script: Script, queue: str) -> Sequence[str]:
        """The keys of a script for a queue, cached for the next calls."""
        keys = self.keys.global_keys(script.keys) if script.is_global else self.keys.of_queue(queue, script.keys)
        if len(self._named) >= MAX_NAMED:
            self._named.clear()
        self._named[script.name, queue] = keys
        return keys


def wire_to(address: Address) -> Wire:
    """The wire for this kind of address, not connected yet."""
    match address.kind:
        case Kind.SERVER:
            return ServerWire(address.dsn, address.replicas)
        case Kind.SENTINEL:
            return SentinelWire(address)
        case Kind.CLUSTER:
            return ClusterWire(address)
