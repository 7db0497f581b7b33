"""Hints on a cluster: a runner of several queues gets hints of all of them, whichever servers keep them."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.seed import enqueue_one
from tests.support.servers.redis_cluster import RedisCluster, new_cluster
from tests.support.servers.redis_programs import Program, programs
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.connection.inspection import acl_rules

QUEUES = tuple(f"q{number}" for number in range(6))
SHARDED_SINCE = 7


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.version)
def cluster(request: pytest.FixtureRequest) -> Iterator[RedisCluster]:
    program: Program = request.param
    made = new_cluster(program=program)
    made.start()
    yield made
    made.remove()


def is_sharded(cluster: RedisCluster) -> bool:
    return cluster.nodes[0].program.major >= SHARDED_SINCE


@pytest.fixture
async def producer(cluster: RedisCluster) -> AsyncIterator[Store]:
    opened = open_store(cluster.url, deadline=5)
    yield opened
    await opened.close()


@pytest.fixture
async def server(cluster: RedisCluster, producer: Store) -> AsyncIterator[Store]:
    """Who serves all of the queues, and listens to each."""
    opened = open_store(cluster.url, deadline=5)
    mark = opened.signals.cursor()
    opened.signals.subscribe(QUEUES)
    homes = {cluster.master_of(f"{{{queue}}}").port for queue in QUEUES}
    assert len(homes) == 3
    await heard(opened, mark, len(homes))
    yield opened
    await opened.close()


async def heard(store: Store, mark: int, times: int = 1) -> None:
    """So often since the mark."""
    while store.signals.cursor() < mark + times:
        assert await store.signals.wait(store.signals.cursor(), 20)


def calls_of(cluster: RedisCluster, command: str) -> int:
    """How often a command was called, on all masters together."""
    stats = [node.execute("INFO", "commandstats") for node in cluster.masters()]
    return sum(each.get(f"cmdstat_{command}", {"calls": 0})["calls"] for each in stats)


async def test_every_queue_is_heard_of_whichever_server_keeps_it(producer: Store, server: Store) -> None:
    for number, queue in enumerate(QUEUES):
        mark = server.signals.cursor()
        await enqueue_one(producer, queue=queue, type=f"type {number}")
        await heard(server, mark)
    assert server.signals.outage is None


async def test_since_seven_only_the_server_of_the_queue_gets_the_hint(
    cluster: RedisCluster, producer: Store, server: Store
) -> None:
    spoken = "spublish" if is_sharded(cluster) else "publish"
    silent = "publish" if is_sharded(cluster) else "spublish"
    await producer.operator.counts()  # so that it has tried its rights, by a message without a receiver
    before, others = calls_of(cluster, spoken), calls_of(cluster, silent)
    mark = server.signals.cursor()
    await enqueue_one(producer, queue="q0", type="a new type")
    await heard(server, mark)
    assert calls_of(cluster, spoken) == before + 1
    assert calls_of(cluster, silent) == others


async def test_a_user_without_shard_channels_enqueues_and_gets_hints_all_the_same(cluster: RedisCluster) -> None:
    for node in cluster.nodes:
        node.execute("ACL", "SETUSER", "plain", "on", ">secret", *acl_rules())
    url = cluster.url.replace("redis+cluster://", "redis+cluster://plain:secret@")
    store = open_store(url, deadline=5)
    mark = store.signals.cursor()
    store.signals.subscribe(["q1"])
    await heard(store, mark)
    mark = store.signals.cursor()
    other = open_store(url, deadline=5)
    await enqueue_one(other, queue="q1", type="of the plain user")
    await heard(store, mark)
    await other.close()
    await store.close()


async def test_a_user_by_the_recipe_for_clusters_uses_shard_channels(cluster: RedisCluster) -> None:
    if not is_sharded(cluster):
        return
    for node in cluster.nodes:
        node.execute("ACL", "SETUSER", "shards", "on", ">secret", *acl_rules(sharded=True))
    url = cluster.url.replace("redis+cluster://", "redis+cluster://shards:secret@")
    store = open_store(url, deadline=5)
    mark = store.signals.cursor()
    store.signals.subscribe(["q2"])
    await heard(store, mark)
    other = open_store(url, deadline=5)
    await other.operator.counts()  # so that it has tried its rights, by a message without a receiver
    before = calls_of(cluster, "publish")
    mark = store.signals.cursor()
    await enqueue_one(other, queue="q2", type="of the shard user")
    await heard(store, mark)
    assert calls_of(cluster, "publish") == before
    await other.close()
    await store.close()


async def test_a_queue_whose_server_died_is_heard_of_again(
    cluster: RedisCluster, producer: Store, server: Store
) -> None:
    lost = cluster.master_of("{q3}")
    mark = server.signals.cursor()
    lost.kill()
    await heard(server, mark)
    await asyncio.to_thread(cluster.await_failover, "{q3}", lost)
    mark = server.signals.cursor()
    await enqueue_one(producer, queue="q3", type="after the failover", fresh="here")
    await heard(server, mark)
    lost.start()
    cluster.settle()
