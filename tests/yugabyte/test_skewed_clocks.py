"""Two nodes whose clocks are half a second apart, on the YugabyteDB profile: leases, due times, order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.clock import ManualClock, OffsetClock
from tests.support.limits.clocks import with_clock
from tests.support.seed import (
    LEASE,
    claim_ids,
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    open_lease,
    running,
    settle,
    status_of,
)
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import with_profile, yugabyte_url
from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.store.contract import Store
from windlass.store.open import open_store

SKEW: Micros = SECOND // 2
TICK: Micros = SECOND // 10
DELAY: Micros = 10 * SECOND


class Nodes(NamedTuple):
    """A client of each."""

    ahead: Store
    behind: Store


@pytest.fixture
async def nodes(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Nodes]:
    url = yugabyte_url(tmp_path)
    found = Nodes(*(open_store(url, clock=OffsetClock(clock, offset)) for offset in (SKEW // 2, -(SKEW // 2))))
    yield found
    for store in found:
        await store.close()


BOTH_WAYS = pytest.mark.parametrize("way", [(0, 1), (1, 0)], ids=["ahead-to-behind", "behind-to-ahead"])


@BOTH_WAYS
async def test_no_job_is_put_back_while_its_runner_may_still_claim(
    nodes: Nodes, clock: ManualClock, way: tuple[int, int]
) -> None:
    """A lease given by one node, looked at by the other, tenth of a second by tenth of a second."""
    giver, looker = (nodes[place] for place in way)
    await open_lease(giver)
    job = await running(giver)
    await pass_renewing(nodes, clock, LEASE - SECOND)
    put_back_at, claimed_at = None, 0
    for passed in range(LEASE - SECOND, LEASE + 2 * SECOND, TICK):
        await enqueue_one(giver)
        with suppress(LeaseLost):
            if await claim_ids(giver):
                claimed_at = passed
        if put_back_at is None and job.id in [rescued.id for rescued in await looker.leases.rescue(10)]:
            put_back_at = passed
        await pass_renewing(nodes, clock, TICK)
    assert put_back_at is not None
    assert claimed_at < put_back_at
    # Its runner counts from before the call: at that moment its lease is over by its own clock too.
    assert LEASE <= put_back_at <= LEASE + 2 * SKEW


async def pass_renewing(nodes: Nodes, clock: ManualClock, time: Micros) -> None:
    """Time passes, and another runner renews its lease now and then: this is no general silence."""
    await open_lease(nodes.ahead, "other", length=5 * LEASE)
    left = time
    while left > 0:
        clock.advance(min(left, 5 * SECOND))
        left -= 5 * SECOND
        for node in nodes:
            assert (await node.leases.renew("w1", ["other"], 5 * LEASE)).kept == ("other",)


@BOTH_WAYS
async def test_a_lease_is_renewed_by_either_node(nodes: Nodes, clock: ManualClock, way: tuple[int, int]) -> None:
    giver, renewer = (nodes[place] for place in way)
    await open_lease(giver)
    for _ in range(5):
        await pass_renewing(nodes, clock, LEASE // 3)
        assert (await renewer.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
        assert await giver.leases.rescue(10) == []
        giver, renewer = renewer, giver


@BOTH_WAYS
async def test_a_delayed_job_is_due_within_half_a_second_of_its_time(
    nodes: Nodes, clock: ManualClock, way: tuple[int, int]
) -> None:
    enqueuer, admitter = (nodes[place] for place in way)
    id_ = await enqueue_one(enqueuer, delay=DELAY)
    clock.advance(DELAY - SKEW - 1)
    await admitter.jobs.admit(10)
    assert await status_of(enqueuer, id_) is Status.SCHEDULED
    clock.advance(2 * SKEW + 1)
    await admitter.jobs.admit(10)
    assert await status_of(enqueuer, id_) is Status.PENDING


async def test_a_job_of_the_clock_that_is_behind_is_claimed_although_later_ones_were(
    nodes: Nodes, clock: ManualClock
) -> None:
    """Its rank is half a second lower than those of jobs that were claimed, completed and passed by watermarks."""
    await open_lease(nodes.ahead)
    for _ in range(5):
        clock.advance(TICK)
        await enqueue(nodes.ahead, 3)
        for job in [await claim_one(nodes.ahead) for _ in range(3)]:
            await settle(nodes.ahead, completed(job))
        late = await enqueue_one(nodes.behind)
        assert await until_claimed(nodes.ahead) == [late]


async def until_claimed(store: Store) -> list[JobId]:
    """A claim looks below its cursors within a small share of the time."""
    for _ in range(1000):
        if taken := await claim_ids(store):
            return taken
        await asyncio.sleep(0.01)
    return []


async def test_jobs_of_two_clocks_are_claimed_in_order_but_for_half_a_second(
    nodes: Nodes, clock: ManualClock
) -> None:
    """Of two that are stored at the same moment, that of the clock behind is first."""
    await open_lease(nodes.behind)
    expected: list[JobId] = []
    for _ in range(10):
        last = await enqueue_one(nodes.ahead)
        expected += [await enqueue_one(nodes.behind), last]
        clock.advance(SKEW + 1)
    assert await claim_ids(nodes.behind) == expected


async def test_the_clocks_of_two_sessions_are_half_a_second_apart_and_a_job_lives_on_both(tmp_path: Path) -> None:
    """By the server's own functions: no client says what time it is."""
    yugabyte_url(tmp_path)
    urls = [with_clock(postgres_place(tmp_path), name, offset) for name, offset in (("ahead", 250), ("behind", -250))]
    (apart,) = Address(urls[0]).execute("SELECT statement_timestamp() - pg_catalog.statement_timestamp()")[0]
    assert apart.total_seconds() == 0.25
    nodes = Nodes(*(open_store(with_profile(url)) for url in urls))
    await open_lease(nodes.behind)
    ids = [await enqueue_one(node, delay=delay) for node in nodes for delay in (0, 1)]
    for node in nodes:
        await node.jobs.admit(10)
    taken = [await claim_one(node) for node in (*nodes, *nodes)]
    assert sorted(job.id for job in taken) == sorted(ids)
    for job, node in zip(taken, (*reversed(nodes), *nodes), strict=True):
        assert await settle(node, completed(job))
    assert [await status_of(nodes.ahead, id_) for id_ in ids] == [Status.COMPLETED] * 4
    for node in nodes:
        await node.close()
