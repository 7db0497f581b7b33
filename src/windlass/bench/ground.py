"""What every measurement is given: a yardstick, sizes, peers, and somebody to tell how far it is."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from windlass.bench.contest import Peer, Place
from windlass.bench.yardstick import Yardstick


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    rounds: int
    drain: int
    of_peers: float
    """The part of their jobs that peers are given."""
    bulk: int
    coroutines: int
    one_by_one: int
    latency: int
    idle_seconds: float
    waiting: tuple[int, ...]
    """How many jobs wait while a claim is timed; the first is what the others are compared with."""
    history: int
    histories: tuple[int, ...]
    """How many jobs have ended before a drain; the first is what the others are compared with."""
    claims: int
    memory: int
    held: int
    """Jobs drained under a held snapshot."""
    edge: int
    """So many of its first and of its last are compared."""
    trickle_seconds: float
    trickle_rate: int
    flow_keys: int
    """Concurrency keys of a drain."""
    blocked: int
    blocked_keys: int
    """Jobs in line, and the keys that they wait for, while others are claimed."""
    scheduled: int
    """Jobs that wait for tomorrow, while others are claimed or come due."""
    trickling: int
    """Jobs that come due one after the other among them."""
    ahead_seconds: float
    """Until jobs are due: in that time they are handed in, and a worker starts."""
    start_seconds: float
    """For a worker to start."""


FULL = Scale(
    rounds=3,
    drain=100_000,
    of_peers=1.0,
    bulk=100_000,
    coroutines=20_000,
    one_by_one=2_000,
    latency=200,
    idle_seconds=10.0,
    waiting=(1_000, 100_000, 1_000_000),
    history=1_000_000,
    histories=(0, 1_000_000),
    claims=60,
    memory=1_000_000,
    held=300_000,
    edge=20_000,
    trickle_seconds=120.0,
    trickle_rate=200,
    flow_keys=10_000,
    blocked=100_000,
    blocked_keys=1_000,
    scheduled=1_000_000,
    trickling=1_000,
    ahead_seconds=40.0,
    start_seconds=5.0,
)
QUICK = Scale(
    rounds=1,
    drain=2_000,
    of_peers=0.02,
    bulk=2_000,
    coroutines=500,
    one_by_one=50,
    latency=10,
    idle_seconds=0.5,
    waiting=(500, 2_000),
    history=2_000,
    histories=(0, 2_000),
    claims=3,
    memory=20_000,
    held=3_000,
    edge=500,
    trickle_seconds=1.0,
    trickle_rate=50,
    flow_keys=200,
    blocked=2_000,
    blocked_keys=20,
    scheduled=2_000,
    trickling=50,
    ahead_seconds=6.0,
    start_seconds=2.0,
)

VERY_FULL = (0, 1_000_000, 10_000_000)
"""Jobs that have ended, where somebody has the time for it."""


class Ground(msgspec.Struct, frozen=True):
    """Where a measurement takes place."""

    yardstick: Yardstick
    scale: Scale
    peers: Sequence[Peer]
    folder: Path
    """For files that are needed for a while."""
    say: Callable[[str], None]
    route: Callable[[str], str] = str
    """From a store's address to the one by which workers and producers reach it."""

    @contextmanager
    def store(self) -> Iterator[str]:
        """The address of an empty store, which is removed afterwards."""
        address = self.yardstick.fresh()
        try:
            yield address
        finally:
            self.yardstick.drop(address)

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Where a peer works."""
        with self.store() as address:
            yield Place(self.scratch(), address)

    def of_peers(self, jobs: int) -> int:
        """How many of its jobs a peer is given."""
        return max(10, int(jobs * self.scale.of_peers))

    def scratch(self) -> Path:
        """An empty folder, which is gone when the bench ends."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def rounds(self, what: str) -> Iterator[int]:
        """One number per round, told to whoever watches."""
        for number in range(1, self.scale.rounds + 1):
            self.say(f"{what}: round {number} of {self.scale.rounds}")
            yield number
