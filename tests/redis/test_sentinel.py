"""Behind Sentinels: the master is found, lost, and found again; what is lost with it is what the address allows."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.processes import until
from tests.support.seed import claim_ids, enqueue_one, open_lease, status_of
from tests.support.servers.redis_sentinel import SERVICE, RedisSentinels
from windlass import App, StoreUnavailable
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store


@pytest.fixture
async def store(redis_sentinels: RedisSentinels) -> AsyncIterator[Store]:
    opened = open_store(redis_sentinels.url, deadline=10)
    yield opened
    await opened.close()


async def test_an_unknown_service_is_reported(redis_sentinels: RedisSentinels) -> None:
    store = open_store(redis_sentinels.url.replace(f"/{SERVICE}", "/other"), deadline=1)
    with pytest.raises(StoreUnavailable, match="the Sentinels do not know service 'other'") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    await store.close()


async def test_a_lost_sentinel_is_no_loss(redis_sentinels: RedisSentinels, store: Store) -> None:
    await asyncio.to_thread(redis_sentinels.watchers[0].kill)
    assert await status_of(store, await enqueue_one(store)) is Status.PENDING


def test_a_producer_without_a_loop_finds_the_master(redis_sentinels: RedisSentinels) -> None:
    app = App(redis_sentinels.url)

    @app.task
    def nothing() -> None: ...

    nothing.enqueue()
    assert redis_sentinels.master().execute("EXISTS", "windlass:{default}:jobs") == 1


async def test_a_master_that_steps_down_is_left_unnoticed(redis_sentinels: RedisSentinels, store: Store) -> None:
    first = await enqueue_one(store)
    old = redis_sentinels.master()
    redis_sentinels.watchers[0].execute("SENTINEL", "FAILOVER", SERVICE)
    await asyncio.to_thread(redis_sentinels.await_failover, old)
    await asyncio.to_thread(until, lambda: old.info()["role"] == "slave", "the old master has stepped down")
    second = await _enqueued(store)
    await open_lease(store)
    assert await claim_ids(store) == [first, second]


async def test_a_killed_master_takes_nothing_with_it_that_a_replica_had(redis_sentinels: RedisSentinels) -> None:
    """`?replicas=1`: what was answered stays, whatever dies; what a replica could not confirm is told as a doubt."""
    store = open_store(f"{redis_sentinels.url}?replicas=1", deadline=10)
    safe = []
    old = redis_sentinels.master()

    async def load() -> None:
        while True:
            safe.append(await enqueue_one(store))

    under_way = asyncio.create_task(load())
    await asyncio.to_thread(until, lambda: len(safe) > 50, "there is some load")
    await asyncio.to_thread(old.kill)
    with pytest.raises(StoreUnavailable) as caught:
        await under_way
    assert caught.value.maybe_done
    await asyncio.to_thread(redis_sentinels.await_failover, old)
    alone = open_store(redis_sentinels.url, deadline=10)
    await open_lease(alone)
    ran: list[str] = []
    while jobs := await claim_ids(alone):
        ran += jobs
    assert set(safe) <= set(ran)
    assert len(ran) == len(set(ran))
    assert len(ran) - len(safe) <= 1  # the one in doubt
    await alone.close()
    await store.close()


async def test_without_replicas_what_the_replica_had_not_yet_is_lost_and_the_rest_is_kept(
    redis_sentinels: RedisSentinels, store: Store
) -> None:
    """What the durability table says: an answer means one server; a failover loses what was on its way."""
    kept = [await enqueue_one(store) for _ in range(20)]
    old = redis_sentinels.master()
    replica = next(server for server in redis_sentinels.servers if server is not old)
    await asyncio.to_thread(until, lambda: _offset(replica) == _offset(old), "the replica has it all")
    replica.freeze()
    lost = [await enqueue_one(store) for _ in range(20)]
    await asyncio.to_thread(old.kill)
    replica.thaw()
    await asyncio.to_thread(redis_sentinels.await_failover, old)
    await _until_open(store)
    ran: list[str] = []
    while jobs := await claim_ids(store):
        ran += jobs
    assert ran[: len(kept)] == kept
    assert set(ran[len(kept) :]) <= set(lost)


async def _enqueued(store: Store) -> str:
    for _ in range(200):
        try:
            return await enqueue_one(store)
        except StoreUnavailable as error:
            if error.maybe_done:
                raise
            await asyncio.sleep(0.05)
    raise AssertionError("nothing was taken after the failover")


async def _until_open(store: Store) -> None:
    for _ in range(200):
        try:
            await open_lease(store)
            return
        except StoreUnavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("the new master did not answer")


def _offset(server: object) -> int:
    return int(server.info()["master_repl_offset"])  # type: ignore[attr-defined]
