"""A rescuer that died half-way, a runner that comes late, global keys that forgot: nothing stays behind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, enqueue, enqueue_one, let_lapse, open_lease, request, running, status_of
from tests.support.servers.redis_places import redis_place
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.store.open import examine, open_store
from windlass.store.records import RunnerEnd
from windlass.store.redis.liveness.leases import allow_runner
from windlass.store.redis.store import RedisStore


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[RedisStore]:
    opened = open_store(redis_place(tmp_path), clock=clock)
    assert isinstance(opened, RedisStore)
    yield opened
    await opened.close()


async def test_what_a_rescuer_left_is_put_back_by_the_next_one(store: RedisStore, clock: ManualClock) -> None:
    job = await running(store)
    await let_lapse(store, clock)
    await store._access.call_global("lapsed_runners", (10,))
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    assert await store._access.command("HLEN", "dead_runners") == 0


async def test_what_a_supervisor_left_is_put_back_by_a_rescuer(store: RedisStore) -> None:
    job = await running(store)
    await store._access.call_global("end_runner", ("r1",))
    assert [(each.id, each.outcome) for each in await store.leases.rescue(10)] == [(job.id, "rescued")]


async def test_a_death_after_the_queue_was_notified_leaves_nothing_behind_either(store: RedisStore) -> None:
    job = await running(store)
    await store._access.call_global("end_runner", ("r1",))
    await store._access.call("runner_jobs", "default", (["r1"], 0))
    ended = RunnerEnd(runner="r1", started=frozenset(), crashed=False)
    assert [(each.id, each.outcome) for each in await store.leases.end(ended)] == [(job.id, "requeued")]


async def test_a_runner_that_is_gone_in_a_queue_does_not_come_back_there(store: RedisStore) -> None:
    """The global keys were read just before the end was written."""
    await enqueue_one(store)
    await open_lease(store)
    await store._access.call_global("register_runner", ("r1", ["default"]))
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    assert await store._access.call("allow_runner", "default", ("r1", 1_000_000)) == 0
    with pytest.raises(LeaseLost):
        await allow_runner(store._access, "r1", ["default"])


async def test_a_runner_missing_from_the_global_keys_is_rescued(store: RedisStore) -> None:
    job = await running(store)
    await store._access.command("DEL", "leases")
    await store._access.command("DEL", "lease_ends")
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    assert await status_of(store, job.id) is Status.PENDING
    with pytest.raises(LeaseLost):
        await store.jobs.claim(request())


async def test_very_many_jobs_are_put_back_in_portions(store: RedisStore) -> None:
    await open_lease(store)
    ids = await enqueue(store, 700)
    claimed = [len(await store.jobs.claim(request(most=250, limit=250))) for _ in range(3)]
    assert claimed == [250, 250, 200]
    rescued = await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    assert [each.id for each in rescued] == sorted(ids)
    assert await store._access.command("ZCARD", "registrations") == 0


async def test_a_lease_that_is_renewed_needs_no_call_to_other_queues(store: RedisStore, clock: ManualClock) -> None:
    """A queue reads the global keys again when what it knows is over."""
    await open_lease(store)
    await enqueue(store, 4)
    for _ in range(4):
        await claim_one(store)
        clock.advance(20_000_000)
        assert (await store.leases.renew("w1", ["r1"], 30_000_000)).kept == ("r1",)


async def test_the_doctor_reports_runners_that_a_rescue_left(store: RedisStore) -> None:
    await running(store)
    await store._access.call_global("end_runner", ("r1",))
    census = (await examine(store.address)).census
    assert census is not None
    assert (census.late_runners, census.late_jobs) == (1, 1)
