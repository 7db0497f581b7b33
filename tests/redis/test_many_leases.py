"""Very many leases: they are told of a silence a portion at a time, and no runner is dead before all were."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_one, enqueue_one, open_lease
from tests.support.servers.redis_places import redis_place
from windlass.core.grace import MAX_GRACES
from windlass.core.moments import SECOND
from windlass.store.open import open_store
from windlass.store.records import LeaseRequest
from windlass.store.redis.liveness.leases import lease_ends
from windlass.store.redis.liveness.workers import late_runners
from windlass.store.redis.store import RedisStore

RUNNERS = [f"runner-{number}" for number in range(1_000)]
"""More than a hash keeps in one piece: those are gone through at once."""


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[RedisStore]:
    opened = open_store(redis_place(tmp_path), clock=clock)
    assert isinstance(opened, RedisStore)
    for runner in RUNNERS:
        await opened.leases.open(LeaseRequest(runner=runner, worker="w", length=LEASE))
    yield opened
    await opened.close()


async def reported(store: RedisStore, clock: ManualClock) -> int:
    """How many have a lease that was counted from now."""
    ends = await lease_ends(store._access, RUNNERS)
    return sum(end >= clock.wall() + LEASE for end in ends.values())


async def test_one_call_grants_some_and_no_runner_is_dead_until_all_were_granted(
    store: RedisStore, clock: ManualClock
) -> None:
    clock.advance(2 * LEASE)
    runners, _, more, _ = await store._access.call_global("lapsed_runners", (10,))
    assert (runners, more) == ([], 1)
    assert 0 < await reported(store, clock) < len(RUNNERS)
    assert await store.leases.rescue(10) == []
    assert await reported(store, clock) == len(RUNNERS)


async def test_a_runner_not_granted_yet_may_continue_as_if_it_were(store: RedisStore, clock: ManualClock) -> None:
    await enqueue_one(store)
    clock.advance(2 * LEASE)
    await store._access.call_global("lapsed_runners", (10,))
    assert await reported(store, clock) < len(RUNNERS)
    assert (await store.leases.renew("w", RUNNERS[:500], LEASE)).lost == ()
    for runner in RUNNERS[500:]:
        assert await store._access.call_global("register_runner", (runner, ["default"])) == LEASE
    assert (await claim_one(store, RUNNERS[-1])).attempt == 1


async def test_graces_are_counted_until_a_renewal(store: RedisStore, clock: ManualClock) -> None:
    for _ in range(MAX_GRACES):
        clock.advance(2 * LEASE)
        assert await store.leases.rescue(10) == []
        assert await reported(store, clock) == len(RUNNERS)
    kept = RUNNERS[::2]
    assert (await store.leases.renew("w", kept, LEASE)).lost == ()
    clock.advance(2 * LEASE)
    for _ in range(len(RUNNERS) // 100):
        await store.leases.rescue(len(RUNNERS))
    ends = await lease_ends(store._access, RUNNERS)
    assert sorted(ends) == sorted(kept)
    assert await store.leases.rescue(10) == []


async def test_a_renewal_during_grants_keeps_the_next_grace(store: RedisStore, clock: ManualClock) -> None:
    clock.advance(2 * LEASE)
    assert (await store.leases.renew("w", RUNNERS, LEASE)).lost == ()
    await store.leases.rescue(10)
    clock.advance(2 * LEASE)
    await store.leases.rescue(10)
    assert await reported(store, clock) == len(RUNNERS)


async def test_a_clock_that_was_set_back_makes_all_leases_end_in_time(store: RedisStore, clock: ManualClock) -> None:
    clock.jump_wall(-100 * LEASE)
    for _ in range(50):
        await open_lease(store, "another")
    ends = await lease_ends(store._access, RUNNERS)
    assert set(ends.values()) == {clock.wall() + LEASE}


async def test_the_shortest_lease_is_known_after_all_were_passed(store: RedisStore, clock: ManualClock) -> None:
    """Half of it is a silence; one that comes while the others are told counts too."""
    clock.advance(2 * LEASE)
    await store._access.call_global("lapsed_runners", (10,))
    await store.leases.open(LeaseRequest(runner="short", worker="w", length=2 * SECOND))
    await store.leases.rescue(10)
    clock.advance(3 * SECOND)
    assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w", ["short"], 2 * SECOND)).kept == ("short",)


async def test_dead_runners_are_late_runners(store: RedisStore, clock: ManualClock) -> None:
    await store._access.call_global("end_runner", ("runner-7",))
    assert await late_runners(store._access, clock.wall()) == ["runner-7"]
