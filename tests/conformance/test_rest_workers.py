"""Leases of REST workers while no server runs: what a gap of all servers ends, and what it does not."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, enqueue_one, let_lapse, look, open_lease
from windlass.core.jobs.job import Claimed
from windlass.core.moments import DAY, Micros
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.server.operation import Caller
from windlass.server.workers.registry import LEASE, RestWorkers
from windlass.store.contract import Store
from windlass.store.records import WorkerInfo

CALLER = cast(Caller, SimpleNamespace(id="token"))
INFO = WorkerInfo(
    id="rest-w", host="", pid=0, version="1", queues=("default",), types=("t",), processes=1, slots=1, rest=True
)
STEP = LEASE // 6


def server(store: Store) -> RestWorkers:
    """A server's registry of REST workers, without rounds of its own."""

    async def ready() -> Store:
        return store

    made = RestWorkers(cast(Any, SimpleNamespace(_ready=ready)), lease=LEASE)
    made._keep = ready  # type: ignore[assignment, method-assign]
    return made


async def working(store: Store) -> Claimed:
    """A job that a REST worker holds; its last call was just now."""
    first = server(store)
    worker = await first.open(CALLER, "w", INFO)
    await enqueue_one(store)
    job = await claim_one(store, worker.runner)
    await first.round()
    return job


async def pass_time(store: Store, clock: ManualClock, gap: Micros, *, python: bool) -> None:
    """A time without a server; a coordinator looks for lapsed leases if there is a Python worker, which beats."""
    runner = await open_lease(store, "r9", "w9")
    for _ in range(gap // STEP):
        clock.advance(STEP)
        if python:
            await store.leases.renew("w9", [runner], LEASE)
            await store.leases.rescue(10)


@pytest.mark.parametrize("python", [True, False], ids=["beside Python workers", "alone"])
async def test_a_gap_of_all_servers_for_one_lease_ends_no_rest_worker(
    store: Store, clock: ManualClock, python: bool
) -> None:
    job = await working(store)
    await pass_time(store, clock, LEASE, python=python)
    second = server(store)
    await second.round()
    await pass_time(store, clock, LEASE // 2, python=python)
    await second.renew(await second.get(CALLER, "w"))
    await second.round()
    assert (await look(store, job.id)).status is Status.RUNNING


async def test_beside_python_workers_a_gap_of_more_than_two_leases_gives_its_jobs_to_others_uncounted(
    store: Store, clock: ManualClock
) -> None:
    job = await working(store)
    await pass_time(store, clock, 3 * LEASE, python=True)
    found = await look(store, job.id)
    assert (found.status, found.rescues, found.crashes) == (Status.PENDING, 1, 0)
    second = server(store)
    with pytest.raises(LeaseLost):
        await second.renew(await second.get(CALLER, "w"))


async def test_without_other_workers_no_gap_is_too_long(store: Store, clock: ManualClock) -> None:
    job = await working(store)
    clock.advance(DAY)
    second = server(store)
    await second.round()
    await second.renew(await second.get(CALLER, "w"))
    await second.round()
    assert (await look(store, job.id)).status is Status.RUNNING


async def test_after_a_gap_the_jobs_of_a_worker_that_is_gone_are_rescued_without_a_coordinator(
    store: Store, clock: ManualClock
) -> None:
    job = await working(store)
    clock.advance(DAY)
    second = server(store)
    await second.round()
    assert (await look(store, job.id)).status is Status.RUNNING
    await let_lapse(store, clock, 2 * LEASE)
    await second.round()
    assert (await look(store, job.id)).rescues == 1
