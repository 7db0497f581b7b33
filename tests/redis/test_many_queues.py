"""What an idle worker costs the server does not grow with the number of queues that it does not serve."""

from collections.abc import AsyncIterator

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, status_of, worker_info
from tests.support.servers.redis import RedisServer
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.duties import queue_rotation as rounds
from windlass.store.redis.duties.queue_rotation import MAX_OTHERS
from windlass.store.redis.liveness import rescue

SOME, MANY = 4 * MAX_OTHERS, 12 * MAX_OTHERS


@pytest.fixture
async def store(redis_server: RedisServer, clock: ManualClock) -> AsyncIterator[Store]:
    opened = open_store(redis_server.url, clock=clock)
    yield opened
    await opened.close()


async def _declare(store: Store, number: int) -> None:
    await store.queues.declare({f"q{n:04}": QueueSettings() for n in range(number)})


async def _duties(store: Store) -> None:
    """What a coordinator does each second, and what a runner of one queue does."""
    await store.jobs.admit(100)
    await store.jobs.expire(100)
    await store.jobs.age(100)
    await store.jobs.park()
    await store.tidy()
    await store.leases.rescue(100)
    await store.jobs.admit(100, ("served",))


def _calls(server: RedisServer) -> int:
    """Scripts that the server has run since its statistics were reset; by EVAL only the rights are looked at."""
    calls: int = server.execute("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
    return calls


async def test_the_calls_of_a_second_do_not_grow(
    redis_server: RedisServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue, "UNREGISTERED_EVERY", 0)
    monkeypatch.setattr(rounds, "SERVED_SECONDS", 0.0)
    await store.workers.beat(worker_info(queues=("served",)))
    await enqueue_one(store, queue="served", delay=3600 * SECOND)
    counted = []
    for number in (SOME, MANY):
        await _declare(store, number)
        await _duties(store)  # queues that are new are looked at once
        redis_server.execute("CONFIG", "RESETSTAT")
        await _duties(store)
        counted.append(_calls(redis_server))
    assert counted[0] == counted[1]
    assert counted[0] < 7 * (MAX_OTHERS + 2)


async def test_a_runner_looks_at_its_own_queues_only(redis_server: RedisServer, store: Store) -> None:
    await _declare(store, SOME)
    await enqueue_one(store, queue="q0001", delay=SECOND)
    await store.jobs.admit(100, ("q0001",))
    redis_server.execute("CONFIG", "RESETSTAT")
    assert (await store.jobs.admit(100, ("q0001",))).next_due_in == SECOND
    assert _calls(redis_server) == 1


async def test_what_is_due_is_admitted_at_once_where_a_worker_serves(
    redis_server: RedisServer, store: Store, clock: ManualClock
) -> None:
    await _declare(store, SOME)
    last = f"q{SOME - 1:04}"
    await store.workers.beat(worker_info(queues=(last,)))
    await store.jobs.admit(100)
    id_ = await enqueue_one(store, queue=last, delay=SECOND)
    clock.advance(SECOND)
    await store.jobs.admit(100)
    assert await status_of(store, id_) is Status.PENDING


async def test_what_is_due_in_other_queues_is_found_after_some_looks_and_then_known(
    store: Store, clock: ManualClock
) -> None:
    await _declare(store, SOME)
    await store.jobs.admit(100)
    queues = [f"q{n:04}" for n in range(0, SOME, 10)]
    early = [await enqueue_one(store, queue=queue, delay=SECOND) for queue in queues]
    late = [await enqueue_one(store, queue=queue, delay=100 * SECOND) for queue in queues]
    clock.advance(SECOND)
    for _ in range(SOME // MAX_OTHERS):
        await store.jobs.admit(100)
    assert {await status_of(store, id_) for id_ in early} == {Status.PENDING}
    clock.advance(100 * SECOND)
    await store.jobs.admit(100)
    assert {await status_of(store, id_) for id_ in late} == {Status.PENDING}


async def test_a_coordinator_that_has_just_begun_looks_everywhere(
    redis_server: RedisServer, store: Store, clock: ManualClock
) -> None:
    await _declare(store, SOME)
    id_ = await enqueue_one(store, queue=f"q{SOME - 1:04}", expires=SECOND)
    clock.advance(SECOND)
    other = open_store(redis_server.url, clock=clock)
    assert len(await other.jobs.expire(100)) == 1
    await other.close()
    assert await status_of(store, id_) is Status.CANCELLED


async def test_looks_wait_for_no_replica(redis_server: RedisServer) -> None:
    """They would fail where one is missing, although nothing was changed."""
    alone = open_store(redis_server.url)
    await enqueue_one(alone, delay=3600 * SECOND)
    await alone.close()
    store = open_store(f"{redis_server.url}?replicas=1", deadline=1)
    await store.operator.counts()
    redis_server.execute("CONFIG", "RESETSTAT")
    assert (await store.jobs.admit(10)).next_due_in is not None
    assert len(await store.jobs.expire(10)) == 0
    assert not await store.signals.has_work(("default",), None)
    await store.tidy()
    assert "cmdstat_wait" not in redis_server.execute("INFO", "commandstats")
    with pytest.raises(StoreUnavailable, match="replicas had the change"):
        await enqueue_one(store)
    await store.close()
