"""The context of a measurement: a store, sizes, peers, and a progress line."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from bench.peer import Peer, PeerStore
from bench.stores.base import StoreBench


class Load(msgspec.Struct, frozen=True):
    """A load: jobs enqueued at a steady rate, even if earlier ones are late."""

    rate: float
    """Jobs per second of each producer."""
    jobs: int
    """Of all producers together, in each round."""
    producers: int = 1

    @property
    def name(self) -> str:
        """The name of its row."""
        each = f"{self.rate:g} jobs/s"
        return each if self.producers == 1 else f"{self.producers} producers, {each} each"


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The size of each measurement."""

    rounds: int
    drain: int
    of_peers: float
    """The share of their jobs that peers run."""
    bulk: int
    coroutines: int
    one_by_one: int
    latency: int
    loads: tuple[Load, ...]
    """The loads under which latency is measured."""
    idle_seconds: float
    waiting: tuple[int, ...]
    """Numbers of waiting jobs while a claim is timed; the first is the base."""
    history: int
    histories: tuple[int, ...]
    """Numbers of finished jobs before a drain; the first is the base."""
    claims: int
    memory: int
    held: int
    """Jobs drained under a held snapshot."""
    edge: int
    """The number of first and of last jobs that are compared."""
    trickle_seconds: float
    trickle_rate: int
    flow_keys: int
    """Concurrency keys of a drain."""
    blocked: int
    blocked_keys: int
    """Jobs that wait for keys, and the keys, while others are claimed."""
    scheduled: int
    """Jobs that wait for tomorrow, while others are claimed or come due."""
    trickling: int
    """Jobs that come due one after the other among them."""
    requests: int
    """Requests to a server whose memory is measured."""
    ahead_seconds: float
    """Seconds until jobs are due: meanwhile they are enqueued, and a worker starts."""
    start_seconds: float
    """Seconds for a worker to start."""
    schedules: int
    """Schedules with the same tick."""
    polls: int
    """Waiting claims of REST workers."""
    claimers: tuple[int, ...]
    """Numbers of processes that claim concurrently."""


FULL = Scale(
    rounds=3,
    drain=100_000,
    of_peers=1.0,
    bulk=100_000,
    coroutines=20_000,
    one_by_one=2_000,
    latency=200,
    loads=(Load(1, 34), Load(10, 334), Load(50, 1_000), Load(200, 1_000), Load(1_000, 5_000), Load(20, 5_000, 50)),
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
    requests=1_000_000,
    ahead_seconds=40.0,
    start_seconds=5.0,
    schedules=10_000,
    polls=1_000,
    claimers=(1, 4, 16),
)
QUICK = Scale(
    rounds=1,
    drain=1_000,
    of_peers=0.02,
    bulk=500,
    coroutines=100,
    one_by_one=10,
    latency=3,
    loads=(Load(50, 5), Load(20, 4, 2)),
    idle_seconds=0.2,
    waiting=(200, 500),
    history=500,
    histories=(0, 500),
    claims=2,
    memory=10_000,
    held=1_500,
    edge=200,
    trickle_seconds=0.2,
    trickle_rate=50,
    flow_keys=100,
    blocked=200,
    blocked_keys=20,
    scheduled=500,
    trickling=20,
    requests=1_000,
    ahead_seconds=3.0,
    start_seconds=1.0,
    schedules=20,
    polls=20,
    claimers=(1, 2),
)

VERY_FULL = (0, 1_000_000, 10_000_000)
"""Finished jobs, with --full."""


class BenchContext(msgspec.Struct, frozen=True):
    """The stores, sizes and peers of one measurement."""

    store_bench: StoreBench
    scale: Scale
    peers: Sequence[Peer]
    folder: Path
    """For temporary files."""
    progress: Callable[[str], None]
    route: Callable[[str], str] = str
    """From a store's address to the one by which workers and producers reach it."""

    @contextmanager
    def store(self) -> Iterator[str]:
        """The address of an empty store, which is removed afterwards."""
        address = self.store_bench.fresh()
        try:
            yield address
        finally:
            self.store_bench.drop(address)

    @contextmanager
    def holding_snapshot(self, address: str, *, held: bool) -> Iterator[None]:
        """Hold a snapshot open by another connection, or do not."""
        with self.store_bench.hold_snapshot(address) if held else nullcontext():
            yield

    @contextmanager
    def peer_store(self) -> Iterator[PeerStore]:
        """An empty folder and store for a peer."""
        with self.store() as address:
            yield PeerStore(self.scratch(), address)

    def of_peers(self, jobs: int) -> int:
        """How many of these jobs a peer runs."""
        return max(10, int(jobs * self.scale.of_peers))

    def scratch(self) -> Path:
        """An empty folder, removed when the bench ends."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def rounds(self, what: str) -> Iterator[int]:
        """One number per round, with a line of progress."""
        for number in range(1, self.scale.rounds + 1):
            self.progress(f"{what}: round {number} of {self.scale.rounds}")
            yield number
