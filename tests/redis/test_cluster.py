"""On a cluster: queues on several servers, slots that move, and masters that die."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis.faulty_wire import FaultyWire
from tests.support.chains import after
from tests.support.processes import until
from tests.support.seed import (
    claim_ids,
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    look,
    new_job,
    open_lease,
    settle,
)
from tests.support.servers.redis_cluster import RedisCluster, new_cluster
from tests.support.servers.slot_move import SlotMove, home_of
from windlass import StoreUnavailable
from windlass.core.jobs.job import Enqueued
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.dependencies import dependents as dependents_module
from windlass.store.redis.store import RedisStore

QUEUES = tuple(f"q{number}" for number in range(12))


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """One for tests that leave it well."""
    made = new_cluster()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(cluster: RedisCluster) -> AsyncIterator[Store]:
    opened = open_store(cluster.url, deadline=5)
    yield opened
    await opened.close()


async def test_queues_are_spread_and_each_is_on_one_server(cluster: RedisCluster, store: Store) -> None:
    for queue in QUEUES:
        await enqueue(store, 3, queue=queue)
    homes = {queue: home_of(cluster, queue) for queue in QUEUES}
    assert len({node.port for node in homes.values()}) == 3
    for queue, home in homes.items():
        found = {node.port for node in cluster.masters() if node.execute("KEYS", f"windlass:{{{queue}}}:*")}
        assert found == {home.port}


async def test_what_spans_queues_spans_servers(cluster: RedisCluster, store: Store) -> None:
    ids = {await enqueue_one(store, queue=queue) for queue in QUEUES}
    found = {(await look(store, id_)).id for id_ in ids}
    assert found == ids
    await open_lease(store, "spanning")
    taken = set()
    for queue in QUEUES:
        taken |= set(await claim_ids(store, "spanning", queues=(queue,)))
    assert taken >= ids


async def test_a_slot_that_moves_while_jobs_come_and_go_is_followed(cluster: RedisCluster, store: Store) -> None:
    await open_lease(store)
    await enqueue_one(store, queue="moving")
    move = SlotMove(cluster, "moving")
    # The slot is half here and half there: what is asked now is refused, with certainty.
    move.half()
    with pytest.raises(StoreUnavailable, match="being moved") as caught:
        await enqueue_one(store, queue="moving")
    assert not caught.value.maybe_done
    move.finish()
    await enqueue_one(store, queue="moving")
    assert home_of(cluster, "moving").port == move.target.port
    assert len(await claim_ids(store, queues=("moving",))) == 2
    cluster.settle()


async def test_a_slot_that_begins_to_move_after_a_job_is_stored_makes_no_failure_of_the_enqueue(
    cluster: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is stored; its parent's queue cannot be asked for long. It is asked later, and the child goes on."""
    store = open_store(cluster.url, deadline=2)
    assert isinstance(store, RedisStore)
    await open_lease(store)
    parent = await enqueue_one(store, queue="parents")
    wire = store._server.wire = FaultyWire(store._server.wire)
    move = SlotMove(cluster, "parents")
    asked: list[str] = []

    async def begin_to_move(script: str) -> None:
        if script == "parent_checks" and script not in asked:
            move.half()
        asked.append(script)

    wire.before = begin_to_move
    child = after(new_job(queue="children"), parent)
    assert await store.jobs.enqueue([child]) == [Enqueued(child.id)]
    assert "parent_checks" in asked
    move.finish()
    cluster.settle()
    monkeypatch.setattr(dependents_module, "ABANDONED_AFTER", 0)
    await store.tidy()
    await settle(store, completed(await claim_one(store, queues=("parents",))))
    assert await claim_ids(store, queues=("children",)) == [child.id]
    await store.close()


async def test_one_silent_node_does_not_keep_us_from_the_others(redis_cluster: RedisCluster) -> None:
    store = open_store(redis_cluster.url, deadline=5)
    before = {queue: await enqueue_one(store, queue=queue) for queue in QUEUES}
    lost = home_of(redis_cluster, QUEUES[0])
    elsewhere = next(queue for queue in QUEUES if home_of(redis_cluster, queue).port != lost.port)
    lost.freeze()
    # An id that was made for this very job: of another it would have to be asked whether any queue knows it.
    added = await enqueue_one(store, queue=elsewhere, fresh="here")
    lost.thaw()
    await open_lease(store)
    assert await claim_ids(store, queues=(elsewhere,)) == [before[elsewhere], added]
    await store.close()


async def test_a_killed_master_is_replaced_and_what_was_stored_runs(redis_cluster: RedisCluster) -> None:
    """Every enqueue that a replica had (`?replicas=1`) is there after the failover, and each is handed out once."""
    store = open_store(f"{redis_cluster.url}?replicas=1", deadline=5)
    safe = {queue: [await enqueue_one(store, queue=queue, fresh="here")] for queue in QUEUES}
    lost = home_of(redis_cluster, QUEUES[0])
    back = asyncio.Event()
    load = asyncio.create_task(_enqueue_until(back, store, safe))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(lost.kill)
    await asyncio.to_thread(until, lambda: home_of(redis_cluster, QUEUES[0]) is not lost, "another is master")
    await asyncio.to_thread(lost.start)  # as a replica: without one nothing can be replicated
    back.set()
    await asyncio.wait_for(load, 60)
    await _until_answers(store)
    await open_lease(store, "after")
    for queue, ids in safe.items():
        ran = []
        while jobs := await claim_ids(store, "after", queues=(queue,)):
            ran += jobs
        assert len(ran) == len(set(ran))
        assert set(ids) <= set(ran), f"lost in {queue}, which a replica had"
    job = await _running_in(store, QUEUES[0])
    assert await settle(store, completed(job)) is not None
    await store.close()


async def _running_in(store: Store, queue: str):  # type: ignore[no-untyped-def]
    await enqueue_one(store, queue=queue)
    return await claim_one(store, "after", queues=(queue,))


async def _enqueue_until(back: asyncio.Event, store: Store, safe: dict[str, list[str]]) -> None:
    """Go on through the failover; what was answered is safe, what was not is not counted."""
    while True:
        for queue, ids in safe.items():
            over = back.is_set()
            try:
                ids.append(await enqueue_one(store, queue=queue, fresh="here"))
            except StoreUnavailable:
                await asyncio.sleep(0.05)
                continue
            if over and queue == QUEUES[0]:
                return


async def _until_answers(store: Store) -> None:
    for _ in range(100):
        try:
            await open_lease(store)
            return
        except StoreUnavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("the cluster did not come back")
