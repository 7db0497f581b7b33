"""Many jobs that wait for held concurrency keys, and other jobs in the same queue."""

from itertools import count

import msgspec

from bench.measures.growth import LEASE, Claims
from bench.worker import CHUNK, make_jobs
from windlass.bench.process import BenchFailed
from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

HOLDER = "holder"
BATCH = 200
MAX_CLAIMS = 1_000
"""After this many claims the keys are held, or the measurement fails."""


class KeyQueue(msgspec.Struct, frozen=True):
    """How many jobs wait, for how many keys."""

    jobs: int
    keys: int

    @property
    def name(self) -> str:
        """Its name in the report."""
        return f"{self.jobs:,} waiting for {self.keys:,} keys"


class StoreFiller:
    """A store that is being filled."""

    CHUNK = 5_000

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ready(self, waiting: int, key_queue: KeyQueue | None) -> Claims:
        """No-op jobs wait, beside a key queue if given; their claims are warmed up."""
        if key_queue is not None:
            await self._queue_for_keys(key_queue)
        for start in range(0, waiting, CHUNK):
            await self._store.jobs.enqueue(make_jobs(min(CHUNK, waiting - start)))
        claims = Claims(self._store)
        await claims.begin()
        for _ in range(3):
            await claims.once()
        return claims

    async def _queue_for_keys(self, key_queue: KeyQueue) -> None:
        """Claim and hold the first job of each key; the others wait for it."""
        await self._enqueue(key_queue.keys, key_queue.keys)
        await self._hold(key_queue.keys)
        await self._enqueue(key_queue.jobs, key_queue.keys)
        waiting = (await self._store.operator.counts()).totals[Status.BLOCKED]
        if waiting != key_queue.jobs:
            raise BenchFailed(f"{key_queue.jobs:,} jobs should wait for keys, and {waiting:,} do")

    async def _enqueue(self, jobs: int, keys: int) -> None:
        for start in range(0, jobs, self.CHUNK):
            made = make_jobs(min(self.CHUNK, jobs - start), threads=True)
            await self._store.jobs.enqueue(
                [
                    msgspec.structs.replace(job, concurrency_key=f"key {(start + n) % keys}")
                    for n, job in enumerate(made)
                ]
            )

    async def _hold(self, keys: int) -> None:
        await self._store.leases.open(LeaseRequest(runner=HOLDER, worker=HOLDER, length=LEASE))
        held, quotas = 0, (QueueQuota(DEFAULT_QUEUE, BATCH),)
        for number in count(1):
            if held >= keys:
                return
            if number > MAX_CLAIMS:
                raise BenchFailed(f"{held:,} of {keys:,} keys are held, and no more can be claimed")
            request = ClaimRequest(runner=HOLDER, claim=number, quotas=quotas, types=("noop_thread",), limit=BATCH)
            held += len(await self._store.jobs.claim(request))
            await self._store.jobs.admit(BATCH)
