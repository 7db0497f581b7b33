"""What every measurement is given: a yardstick, sizes, peers, and somebody to tell how far it is."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from windlass.bench.contest import Peers
from windlass.bench.yardstick import Yardstick


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    rounds: int
    drain: int
    peer_drain: int
    bulk: int
    coroutines: int
    one_by_one: int
    latency: int
    idle_seconds: float
    waiting: tuple[int, ...]
    """How many jobs wait while a claim is timed; the first is what the others are compared with."""
    history: int
    claims: int
    memory: int


FULL = Scale(
    rounds=3,
    drain=100_000,
    peer_drain=5_000,
    bulk=100_000,
    coroutines=20_000,
    one_by_one=2_000,
    latency=200,
    idle_seconds=10.0,
    waiting=(1_000, 100_000, 1_000_000),
    history=1_000_000,
    claims=60,
    memory=1_000_000,
)
QUICK = Scale(
    rounds=1,
    drain=2_000,
    peer_drain=200,
    bulk=2_000,
    coroutines=500,
    one_by_one=50,
    latency=10,
    idle_seconds=0.5,
    waiting=(500, 2_000),
    history=2_000,
    claims=3,
    memory=20_000,
)


class Ground(msgspec.Struct, frozen=True):
    """Where a measurement takes place."""

    yardstick: Yardstick
    scale: Scale
    peers: Peers
    folder: Path
    """For files that are needed for a while."""
    say: Callable[[str], None]

    @contextmanager
    def store(self) -> Iterator[str]:
        """The address of an empty store, which is removed afterwards."""
        address = self.yardstick.fresh()
        try:
            yield address
        finally:
            self.yardstick.drop(address)

    def scratch(self) -> Path:
        """An empty folder, which is gone when the bench ends."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def rounds(self, what: str) -> Iterator[int]:
        """One number per round, told to whoever watches."""
        for number in range(1, self.scale.rounds + 1):
            self.say(f"{what}: round {number} of {self.scale.rounds}")
            yield number
