"""Processes that claim and complete jobs in batches of a fixed size by the verbs of the store, without a worker."""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier, Event
from random import Random

import msgspec

from windlass.bench.process import BenchFailed
from windlass.core.jobs.outcome import Done, Policy, decide
from windlass.core.jobs.retry import Fixed
from windlass.store.open import open_store
from windlass.store.postgres.store import PostgresStore
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

LENGTH = 3_600_000_000
START_SECONDS = 300.0
IN_VAIN = 20
"""Consecutive claims without a job after which a claimer ends: another may hold a lock."""
TIDY_SECONDS = 1.0
"""As often as a coordinator."""
TYPE = "noop"

_processes = multiprocessing.get_context("spawn")


class Drained(msgspec.Struct, frozen=True):
    """What claimers did; moments are those of the machine's monotonic clock."""

    begin: float
    end: float
    jobs: int
    lock_waits: int

    @property
    def seconds(self) -> float:
        """From the first claim to the last completion."""
        return self.end - self.begin


def drain(address: str, claimers: int, batch: int, in_vain: int = IN_VAIN) -> Drained:
    """Drain until nothing is left; the claimers begin together."""
    barrier = _processes.Barrier(claimers)
    found = _processes.SimpleQueue()
    each = [
        _processes.Process(target=_run, args=(address, f"c{number}", batch, in_vain, barrier, found))
        for number in range(claimers)
    ]
    for process in each:
        process.start()
    for process in each:
        process.join()
    of_each = [Drained(*found.get()) for process in each if process.exitcode == 0]
    if len(of_each) < claimers:
        raise BenchFailed(f"{claimers - len(of_each)} of {claimers} claimers failed")
    return Drained(
        min(one.begin for one in of_each),
        max(one.end for one in of_each),
        sum(one.jobs for one in of_each),
        sum(one.lock_waits for one in of_each),
    )


@contextmanager
def tidied(address: str) -> Iterator[None]:
    """Run one more process that raises the watermarks, as a coordinator does."""
    ended = _processes.Event()
    coordinator = _processes.Process(target=_tidy, args=(address, ended))
    coordinator.start()
    try:
        yield
    finally:
        ended.set()
        coordinator.join()
    if coordinator.exitcode:
        raise BenchFailed("the process that tidies the store failed")


def _tidy(address: str, ended: Event) -> None:
    asyncio.run(_tidy_until(address, ended))


async def _tidy_until(address: str, ended: Event) -> None:
    store = open_store(address)
    while not await asyncio.to_thread(ended.wait, TIDY_SECONDS):
        await store.tidy()
    await store.close()


def _run(
    address: str,
    runner: str,
    batch: int,
    in_vain: int,
    barrier: Barrier,
    found: "multiprocessing.SimpleQueue[tuple[float, float, int, int]]",
) -> None:
    found.put(asyncio.run(_drain(address, runner, batch, in_vain, barrier)))


async def _drain(
    address: str, runner: str, batch: int, in_vain: int, barrier: Barrier
) -> tuple[float, float, int, int]:
    store, policy, dice = open_store(address), Policy(retry=Fixed(base=1, jitter=0)), Random(0)
    assert isinstance(store, PostgresStore)
    await store.leases.open(LeaseRequest(runner=runner, worker=runner, length=LENGTH))
    await asyncio.to_thread(barrier.wait, START_SECONDS)
    begin = end = time.monotonic()
    number = done = without = 0
    while without < in_vain:
        number += 1
        quotas = (QueueQuota("default", batch, 0),)
        jobs = await store.jobs.claim(
            ClaimRequest(runner=runner, claim=number, quotas=quotas, types=(TYPE,), limit=batch, free=None)
        )
        without = 0 if jobs else without + 1
        if jobs:
            await store.jobs.settle([decide(job, Done("null"), policy, dice) for job in jobs])
            done += len(jobs)
            end = time.monotonic()
    await store.close()
    return begin, end, done, store._server.conflicts.lock_waits
