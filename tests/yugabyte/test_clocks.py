"""Clocks of several nodes, half a second apart: leases have a margin, and no job is lost or run twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_ids, completed, enqueue, enqueue_one, look, open_lease, request
from tests.support.stores import STORES
from windlass.core.flow.queue import settings
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.postgres.connection.profile import SKEW

BEHIND, AHEAD = range(2)


class Nodes:
    """Two nodes: the clock of the second is ahead by as much as may be."""

    def __init__(self, folder: Path) -> None:
        self._clocks = [ManualClock(), ManualClock()]
        self._clocks[AHEAD].jump_wall(SKEW)
        self.stores: list[Store] = [STORES["yugabyte"].open(folder, clock) for clock in self._clocks]

    def advance(self, micros: Micros) -> None:
        for clock in self._clocks:
            clock.advance(micros)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    both = Nodes(tmp_path)
    yield both
    for store in both.stores:
        await store.close()


async def keep_beating(nodes: Nodes, until: Micros) -> None:
    """A bystander renews, so that the silence of the others is no outage."""
    await open_lease(nodes.stores[BEHIND], "bystander", "another")
    for _ in range(5):
        nodes.advance(until // 5)
        await nodes.stores[BEHIND].leases.renew("another", ["bystander"], LEASE)
    nodes.advance(until - until // 5 * 5)


async def test_a_lease_is_not_taken_from_a_runner_before_its_time_by_the_clock_that_is_ahead(nodes: Nodes) -> None:
    await open_lease(nodes.stores[BEHIND])
    id_ = await enqueue_one(nodes.stores[BEHIND])
    await claim_ids(nodes.stores[BEHIND])
    await keep_beating(nodes, LEASE - 1)
    assert await nodes.stores[AHEAD].leases.rescue(10) == []
    assert (await nodes.stores[BEHIND].leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert (await look(nodes.stores[BEHIND], id_)).status is Status.RUNNING


async def test_a_lease_may_be_renewed_through_the_clock_that_is_ahead_until_its_time(nodes: Nodes) -> None:
    await open_lease(nodes.stores[BEHIND])
    await keep_beating(nodes, LEASE - 1)
    assert (await nodes.stores[AHEAD].leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)


@pytest.mark.parametrize("rescuer", [BEHIND, AHEAD])
async def test_a_dead_runner_is_noticed_at_most_the_margin_later(nodes: Nodes, rescuer: int) -> None:
    await open_lease(nodes.stores[AHEAD])
    id_ = await enqueue_one(nodes.stores[AHEAD])
    await claim_ids(nodes.stores[AHEAD])
    await keep_beating(nodes, LEASE + 2 * SKEW)
    assert [each.id for each in await nodes.stores[rescuer].leases.rescue(10)] == [id_]


async def test_jobs_of_both_clocks_are_all_claimed_and_none_twice(nodes: Nodes) -> None:
    for store, runner in zip(nodes.stores, ("r1", "r2"), strict=True):
        await open_lease(store, runner, f"of {runner}")
    ids, runs = [], []
    for _ in range(10):
        ids += [id_ for store in nodes.stores for id_ in await enqueue(store, 3)]
        for store, runner in zip(nodes.stores, ("r1", "r2"), strict=True):
            jobs = await store.jobs.claim(request(runner, limit=2))
            await store.jobs.settle([completed(job) for job in jobs])
            runs += [job.id for job in jobs]
        nodes.advance(SECOND // 10)
    while jobs := await nodes.stores[BEHIND].jobs.claim(request()):
        runs += [job.id for job in jobs]
    assert sorted(runs) == sorted(ids)


async def test_a_job_is_due_by_one_clock_or_the_other_at_most_the_margin_early(nodes: Nodes) -> None:
    id_ = await enqueue_one(nodes.stores[BEHIND], delay=10 * SECOND)
    nodes.advance(10 * SECOND - SKEW - 1)
    assert (await nodes.stores[AHEAD].jobs.admit(10)).jobs == 0
    nodes.advance(1)
    assert (await nodes.stores[BEHIND].jobs.admit(10)).jobs == 0
    assert (await nodes.stores[AHEAD].jobs.admit(10)).jobs == 1
    assert (await look(nodes.stores[BEHIND], id_)).status is Status.PENDING


async def test_a_job_admitted_ahead_is_claimed_by_the_clock_behind(nodes: Nodes) -> None:
    await open_lease(nodes.stores[BEHIND])
    id_ = await enqueue_one(nodes.stores[AHEAD])
    assert await claim_ids(nodes.stores[BEHIND]) == [id_]


async def test_a_rate_brings_as_many_extra_starts_as_in_half_a_second(nodes: Nodes) -> None:
    await nodes.stores[BEHIND].queues.declare({"default": settings(rate_limit="100/s burst 100")})
    for store, runner in zip(nodes.stores, ("r1", "r2"), strict=True):
        await open_lease(store, runner, f"of {runner}")
    await enqueue(nodes.stores[BEHIND], 500)
    started, seconds = 0, 2
    for turn in range(10 * seconds + 1):
        for store, runner in zip(nodes.stores, ("r1", "r2"), strict=True):
            started += len(await claim_ids(store, runner, limit=500, most=500))
        if turn < 10 * seconds:
            nodes.advance(SECOND // 10)
    assert started == 100 + 100 * seconds + 100 * SKEW // SECOND
