"""Processes that claim and complete jobs in batches of a fixed size by the verbs of the store, without a worker."""

import asyncio
import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from random import Random

from windlass.core.jobs.outcome import Done, Policy, decide
from windlass.core.jobs.retry import Fixed
from windlass.store.open import open_store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

LENGTH = 600_000_000
START_SECONDS = 60.0
IN_VAIN = 20
"""Claims without a job after which a claimer ends: another may be in its way."""
TYPE = "noop"

_processes = multiprocessing.get_context("spawn")


def drain(address: str, claimers: int, batch: int) -> float:
    """Seconds from the first claim to the last completion."""
    barrier = _processes.Barrier(claimers)
    spans = _processes.SimpleQueue()
    each = [
        _processes.Process(target=_run, args=(address, f"c{number}", batch, barrier, spans))
        for number in range(claimers)
    ]
    for process in each:
        process.start()
    for process in each:
        process.join()
    found = [spans.get() for process in each if process.exitcode == 0]
    if len(found) < claimers:
        raise RuntimeError(f"{claimers - len(found)} of {claimers} claimers failed")
    return float(max(end for _, end in found) - min(begin for begin, _ in found))


def _run(
    address: str, runner: str, batch: int, barrier: Barrier, spans: "multiprocessing.SimpleQueue[object]"
) -> None:
    asyncio.run(_drain(address, runner, batch, barrier, spans))


async def _drain(
    address: str, runner: str, batch: int, barrier: Barrier, spans: "multiprocessing.SimpleQueue[object]"
) -> None:
    store, policy, dice = open_store(address), Policy(retry=Fixed(base=1, jitter=0)), Random(0)
    await store.leases.open(LeaseRequest(runner=runner, worker=runner, length=LENGTH))
    await asyncio.to_thread(barrier.wait, START_SECONDS)
    begin = end = time.monotonic()
    number = in_vain = 0
    while in_vain < IN_VAIN:
        number += 1
        quotas = (QueueQuota("default", batch, 0),)
        jobs = await store.jobs.claim(
            ClaimRequest(runner=runner, claim=number, quotas=quotas, types=(TYPE,), limit=batch, free=None)
        )
        in_vain = 0 if jobs else in_vain + 1
        if jobs:
            await store.jobs.settle([decide(job, Done("null"), policy, dice) for job in jobs])
            end = time.monotonic()
    await store.close()
    spans.put((begin, end))
