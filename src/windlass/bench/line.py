"""A long line: jobs that wait for keys which somebody holds, and a queue of others beside them."""

from itertools import count

import msgspec

from windlass.bench import labour
from windlass.bench.contest import BenchFailed
from windlass.bench.growth import LEASE, Claims
from windlass.core.job import DEFAULT_QUEUE
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueShare

HOLDER = "holder"
BATCH = 200
MOST_CLAIMS = 1_000
"""After so many without an end the keys are not going to be held."""


class Line(msgspec.Struct, frozen=True):
    """How many are in line, for how many keys."""

    jobs: int
    keys: int

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.jobs:,} in line for {self.keys:,} keys"


class LineUp:
    """A store that is being filled."""

    CHUNK = 5_000

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ready(self, waiting: int, line: Line | None) -> Claims:
        """So many no-ops wait, perhaps beside a line; claims of them are warm."""
        if line is not None:
            await self._stand(line)
        for start in range(0, waiting, labour.CHUNK):
            await self._store.jobs.enqueue(labour.make(min(labour.CHUNK, waiting - start)))
        claims = Claims(self._store)
        await claims.begin()
        for _ in range(3):
            await claims.once()
        return claims

    async def _stand(self, line: Line) -> None:
        """The first of each key is taken and held; whoever comes after it is in line."""
        await self._hand_in(line.keys, line.keys)
        await self._hold(line.keys)
        await self._hand_in(line.jobs, line.keys)
        in_line = (await self._store.operator.counts()).totals[Status.BLOCKED]
        if in_line != line.jobs:
            raise BenchFailed(f"{line.jobs:,} jobs should be in line, and {in_line:,} are")

    async def _hand_in(self, jobs: int, keys: int) -> None:
        for start in range(0, jobs, self.CHUNK):
            made = labour.make(min(self.CHUNK, jobs - start), threads=True)
            await self._store.jobs.enqueue(
                [
                    msgspec.structs.replace(job, concurrency_key=f"key {(start + n) % keys}")
                    for n, job in enumerate(made)
                ]
            )

    async def _hold(self, keys: int) -> None:
        await self._store.leases.open(LeaseRequest(runner=HOLDER, worker=HOLDER, length=LEASE))
        held, shares = 0, (QueueShare(DEFAULT_QUEUE, BATCH),)
        for number in count(1):
            if held >= keys:
                return
            if number > MOST_CLAIMS:
                raise BenchFailed(f"{held:,} of {keys:,} keys are held, and no more can be claimed")
            request = ClaimRequest(runner=HOLDER, claim=number, shares=shares, types=("noop_thread",), limit=BATCH)
            held += len(await self._store.jobs.claim(request))
            await self._store.jobs.admit(BATCH)
