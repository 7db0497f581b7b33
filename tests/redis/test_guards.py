"""What a server must be, and stay, to be trusted with jobs."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.processes import until
from tests.support.seed import (
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    new_job,
    open_lease,
    request,
    settle,
    status_of,
)
from tests.support.servers.redis import RedisServer, new_redis
from windlass import App, EnqueueFailed, StoreUnavailable
from windlass.core.status import Status
from windlass.errors import SchemaMismatch
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import Settled
from windlass.store.redis.connection import server_watch as watch
from windlass.store.redis.records.migrate import VERSION


@pytest.fixture
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is looked at before every call, so that no test waits for ten seconds."""
    monkeypatch.setattr(watch, "INTERVAL", 0.0)
    monkeypatch.setattr(watch, "SHORT_INTERVAL", 0.0)


@pytest.fixture
async def store(redis_server: RedisServer, attentive: None) -> AsyncIterator[Store]:
    opened = open_store(redis_server.url)
    yield opened
    await opened.close()


@pytest.fixture
def another() -> Iterator[RedisServer]:
    server = new_redis()
    server.start()
    yield server
    server.remove()


async def _stored(store: Store) -> int:
    """How many jobs there are."""
    return sum((await store.operator.counts()).totals.values())


async def _fill(store: Store) -> None:
    for _ in range(1000):
        await enqueue(store, 50, payload='"' + "x" * 1000 + '"')


async def _refused(store: Store) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        await enqueue_one(store)
    assert caught.value.maybe_done is False
    return caught.value


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_policy_that_evicts_is_refused_at_the_start_and_when_it_changes(
    redis_server: RedisServer, store: Store, policy: str
) -> None:
    redis_server.config(maxmemory_policy=policy)
    refusal = await _refused(store)
    assert policy in str(refusal)
    assert "CONFIG SET maxmemory-policy noeviction" in str(refusal)
    assert refusal.lasting
    redis_server.config(maxmemory_policy="noeviction")
    await enqueue_one(store)
    redis_server.config(maxmemory_policy=policy)
    await _refused(store)
    redis_server.config(maxmemory_policy="noeviction")
    assert await _stored(store) == 1


async def test_a_server_that_does_not_write_is_refused_at_the_start_and_when_it_changes(
    redis_server: RedisServer, store: Store
) -> None:
    redis_server.config(appendonly="no")
    refusal = await _refused(store)
    assert "appendonly is no" in str(refusal)
    assert "durability=none" in str(refusal)
    redis_server.config(appendonly="yes")
    await enqueue_one(store)
    redis_server.config(appendonly="no")
    await _refused(store)


async def test_a_program_that_accepts_the_loss_may_use_a_server_that_does_not_write(
    redis_server: RedisServer,
) -> None:
    redis_server.config(appendonly="no")
    store = open_store(f"{redis_server.url}?durability=none")
    assert await status_of(store, await enqueue_one(store)) is Status.PENDING
    await store.close()


async def test_near_the_end_of_memory_no_job_is_taken_and_workers_go_on(
    redis_server: RedisServer, store: Store
) -> None:
    await open_lease(store)
    await enqueue(store, 3)
    redis_server.execute("SETRANGE", "ballast", 20_000_000, "x")
    used = redis_server.info()["used_memory"]
    redis_server.config(maxmemory=int(used * 1.05))
    refusal = await _refused(store)
    assert "memory is nearly full" in str(refusal)
    for _ in range(3):
        assert await settle(store, completed(await claim_one(store))) is Settled.SETTLED
    redis_server.config(maxmemory=used * 4)
    await enqueue_one(store)


async def test_a_burst_is_noticed_before_it_fills_the_memory(redis_server: RedisServer) -> None:
    """With the usual ten seconds between looks: what this process enqueues makes it look earlier."""
    used = redis_server.info()["used_memory"]
    redis_server.config(maxmemory=used + (12 << 20))
    store = open_store(redis_server.url)
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await _fill(store)
    await open_lease(store)
    jobs = await store.jobs.claim(request(limit=100))
    assert len(jobs) == 100
    await store.jobs.settle([completed(job) for job in jobs])
    await store.close()


async def test_a_full_memory_is_said_and_nothing_is_stored(redis_server: RedisServer) -> None:
    store = open_store(redis_server.url)
    await enqueue_one(store)
    redis_server.config(maxmemory=1 << 20)
    refusal = await _refused(store)
    assert "memory is full" in str(refusal)
    assert not refusal.lasting
    redis_server.config(maxmemory=0)
    assert await _stored(store) == 1
    await store.close()


async def test_a_replica_is_refused(redis_server: RedisServer, another: RedisServer) -> None:
    redis_server.execute("REPLICAOF", "127.0.0.1", another.port)
    store = open_store(redis_server.url)
    assert "is a replica" in str(await _refused(store))
    await store.close()


async def test_a_server_that_becomes_a_replica_takes_nothing_any_more(
    redis_server: RedisServer, another: RedisServer
) -> None:
    # As long as it has not heard from its master it has its own keys, and takes no changes.
    another.config(requirepass="unknown")
    store = open_store(redis_server.url)
    await enqueue_one(store)
    redis_server.execute("REPLICAOF", "127.0.0.1", another.port)
    assert "replica" in str(await _refused(store))
    await store.close()


@pytest.mark.parametrize("queue", ["default", "never-seen"])
async def test_an_emptied_store_is_noticed_and_said(redis_server: RedisServer, queue: str) -> None:
    """Without a look: the first call to a queue that is gone finds out."""
    store = open_store(redis_server.url)
    await enqueue_one(store)
    redis_server.execute("FLUSHALL")
    with pytest.raises(StoreUnavailable, match=r"emptied \(FLUSHALL\?\) or replaced") as caught:
        await enqueue_one(store, queue=queue)
    assert caught.value.lasting
    assert not caught.value.maybe_done
    again = open_store(redis_server.url)
    await enqueue_one(again)
    with pytest.raises(StoreUnavailable, match="emptied"):
        await enqueue_one(store)
    await store.close()
    await again.close()


@pytest.mark.parametrize("many", [1, 2])
async def test_queues_that_were_lost_alone_are_reported_once(redis_server: RedisServer, many: int) -> None:
    """As one server of a cluster may lose what it had; then they begin anew."""
    store = open_store(redis_server.url)
    jobs = [new_job(queue=f"q{n}") for n in range(many)]
    await store.jobs.enqueue(jobs)
    keys = redis_server.execute("KEYS", "windlass:{q0}:*")
    redis_server.execute("UNLINK", *(key.decode() for key in keys))
    with pytest.raises(StoreUnavailable, match="the queues q0 were here and are gone") as caught:
        await store.jobs.enqueue(jobs)
    assert not caught.value.lasting
    await store.jobs.enqueue(jobs)
    assert (await store.operator.counts()).totals["pending"] == many
    await store.close()


async def test_an_emptied_store_is_noticed_by_processes_that_only_read(
    redis_server: RedisServer, store: Store
) -> None:
    await enqueue_one(store)
    redis_server.execute("FLUSHALL")
    with pytest.raises(StoreUnavailable, match="emptied"):
        await store.operator.counts()


async def test_keys_of_a_later_version_are_left_alone(redis_server: RedisServer, store: Store) -> None:
    await enqueue_one(store)
    redis_server.execute("HSET", "windlass:{*}:meta", "version", VERSION + 1, "oldest", VERSION + 1)
    with pytest.raises(SchemaMismatch, match=f"version {VERSION + 1}"):
        await enqueue_one(store)
    later = open_store(redis_server.url)
    with pytest.raises(SchemaMismatch, match="upgrade"):
        await later.migrate()
    await later.close()


async def test_a_look_is_taken_when_it_is_due_and_not_at_every_call(redis_server: RedisServer) -> None:
    store = open_store(redis_server.url)
    await enqueue_one(store)
    redis_server.execute("CONFIG", "RESETSTAT")
    for _ in range(20):
        await enqueue_one(store)
    assert "cmdstat_info" not in redis_server.execute("INFO", "commandstats")
    await store.close()


def test_a_producer_is_told_that_nothing_was_stored(redis_server: RedisServer) -> None:
    redis_server.config(maxmemory_policy="allkeys-random")
    app = App(redis_server.url)

    @app.task
    def nothing() -> None: ...

    with pytest.raises(EnqueueFailed, match=r"nothing was stored: redis://127.* maxmemory-policy is allkeys-random"):
        nothing.enqueue()


async def test_a_change_that_no_replica_has_is_reported_as_uncertain(redis_server: RedisServer) -> None:
    alone = open_store(redis_server.url)
    await alone.migrate()
    await alone.close()
    store = open_store(f"{redis_server.url}?replicas=1", deadline=1)
    with pytest.raises(StoreUnavailable, match=r"0 of 1 replicas had the change within 0\.5 s") as caught:
        await enqueue_one(store)
    assert caught.value.maybe_done
    await store.close()


async def test_a_change_that_a_replica_has_is_answered(redis_server: RedisServer, another: RedisServer) -> None:
    another.execute("REPLICAOF", "127.0.0.1", redis_server.port)
    until(lambda: another.info()["master_link_status"] == "up", "the replica is up to date")
    store = open_store(f"{redis_server.url}?replicas=1")
    id_ = await enqueue_one(store)
    assert another.execute("HEXISTS", "windlass:{default}:jobs", id_)
    await store.close()
