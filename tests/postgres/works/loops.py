"""Claim loops without processes of their own: each is registered, has a lease that it renews, claims and settles.

Run as `python -m tests.postgres.works.loops URL LOOPS LEASE_SECONDS`, until it is told to end. What goes wrong is
said on standard output, in the words that a worker uses.
"""

import asyncio
import os
import random
import signal
import sys

from tests.support.seed import completed, request, worker_info
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import LeaseRequest, ProcessRole, RunnerEnd

QUEUES, TYPES = ("default",), ("quick",)
MAX_JOBS = 10


class Loop:
    """One runner with its own connections."""

    def __init__(self, store: Store, lease: float, effects: int) -> None:
        self._store = store
        self._lease = int(lease * SECOND)
        self._effects = effects
        self.worker, self.runner = new_runner_id(os.urandom), new_runner_id(os.urandom)

    async def run(self, over: asyncio.Event) -> None:
        """Until it is over; then everything is signed off."""
        await self._register()
        await self._store.leases.open(LeaseRequest(runner=self.runner, worker=self.worker, length=self._lease))
        beating = asyncio.create_task(self._beat())
        claim = 0
        while not over.is_set():
            claim += 1
            if not await self._step(claim):
                await asyncio.sleep(random.uniform(0.75, 1.0))
        beating.cancel()
        ended = RunnerEnd(runner=self.runner, started=frozenset(), returned=frozenset(), crashed=False)
        await self._store.leases.end(ended)
        await self._store.workers.unregister(self.worker)
        await self._store.close()

    async def _step(self, claim: int) -> int:
        try:
            jobs = await self._store.jobs.claim(
                request(self.runner, claim=claim, queues=QUEUES, types=TYPES, most=MAX_JOBS, limit=MAX_JOBS)
            )
            os.write(self._effects, "".join(f"{job.id}\n" for job in jobs).encode())
            if jobs:
                await self._store.jobs.settle([completed(job) for job in jobs])
        except LeaseLost:
            print(f"the lease of {self.runner} lapsed", flush=True)
            return 0
        except StoreUnavailable as error:
            print(f"claiming failed, trying again: {error}", flush=True)
            return 0
        return len(jobs)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease / SECOND / 3)
            renewal = await self._store.leases.renew(self.worker, [self.runner], self._lease)
            await self._register()
            if renewal.lost:
                print(f"the lease of {self.runner} lapsed", flush=True)

    async def _register(self) -> None:
        await self._store.workers.beat(worker_info(self.worker, pid=os.getpid(), queues=QUEUES, types=TYPES))


async def main(url: str, loops: int, lease: float) -> None:
    """All of them on one event loop."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    effects = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    made = [Loop(open_store(url, opener=ProcessRole.RUNNER), lease, effects) for _ in range(loops)]
    async with asyncio.TaskGroup() as group:
        for each in made:
            group.create_task(each.run(over))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
