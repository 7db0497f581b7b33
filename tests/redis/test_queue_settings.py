"""A queue is one hash: written as it was read, with what scripts want ready-made."""

import asyncio
from pathlib import Path

import msgspec
import redis

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, enqueue_one
from tests.support.stores import STORES
from windlass.core.flow.queue import NO_RATE, Queue, QueueSettings
from windlass.core.flow.rate import Rate
from windlass.store.contract import Store
from windlass.store.redis.records.queue_settings import FIELDS, kept_settings


def connected(store: Store) -> tuple[redis.Redis, str]:
    """A client of the test's own, and the head of the keys of the queue `default`."""
    address, _, prefix = store.address.partition("?prefix=")
    return redis.Redis.from_url(address), f"{prefix}:{{default}}:"


def test_what_scripts_reckon_with_is_kept_beside_what_was_said() -> None:
    settings = QueueSettings(rate_limit=Rate(5, 60_000_000, 9), fair=True, weights={"acme": 2.5}, max_concurrency=4)
    kept = kept_settings(Queue(name="q", declared=settings))
    assert (kept["rate_tokens"], kept["rate_period"], kept["rate_burst"]) == (5, 60_000_000, 9)
    assert msgspec.json.decode(str(kept["weights"])) == {"acme": 2.5}
    assert (kept["fair"], kept["max_concurrency"], kept["paused"]) == (1, 4, 0)
    assert set(kept) <= set(FIELDS)


def test_what_is_lifted_is_not_kept() -> None:
    declared = QueueSettings(rate_limit=Rate(5, 60_000_000, 9))
    kept = kept_settings(Queue(name="q", declared=declared, changed=QueueSettings(rate_limit=NO_RATE)))
    assert not {"rate_limit", "rate_tokens", "weights", "paused_until"} & set(kept)


async def test_two_changes_of_a_queue_at_once_both_take_effect(tmp_path: Path, clock: ManualClock) -> None:
    stores = [STORES["redis"].open(tmp_path, clock) for _ in range(4)]
    await asyncio.gather(
        stores[0].queues.pause("q", None),
        stores[1].queues.close("q"),
        stores[2].queues.change("q", QueueSettings(max_attempts=9)),
        stores[3].queues.declare({"q": QueueSettings(max_concurrency=3)}),
    )
    (queue,) = await stores[0].queues.list()
    assert (queue.paused, queue.closed, queue.rules.max_attempts, queue.rules.max_concurrency) == (True, True, 9, 3)
    for store in stores:
        await store.close()


async def test_declaring_what_is_declared_writes_nothing(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(max_attempts=3)})
    client, head = connected(store)
    with client:
        before = client.hget(head + "queue", "version")
        await store.queues.declare({"default": QueueSettings(max_attempts=3)})
        assert client.hget(head + "queue", "version") == before == b"1"


async def test_there_are_tenant_queues_only_while_a_queue_is_fair(store: Store) -> None:
    client, head = connected(store)
    with client:
        await store.queues.change("default", QueueSettings(fair=True))
        assert not client.hexists(head + "queue", "assigning_tenants")
        await enqueue(store, 3, tenant="acme")
        assert client.zcard(head + "tenant_queues") == 3
        await store.queues.change("default", QueueSettings())
        assert client.zcard(head + "tenant_queues") == 0
        await store.queues.change("default", QueueSettings(fair=True))
        assert client.hget(head + "queue", "assigning_tenants") == b"1"


async def test_a_waiting_claim_is_notified_when_a_pause_ends(store: Store) -> None:
    await store.queues.pause("default", None)
    await enqueue_one(store)
    client, head = connected(store)
    with client, client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(head + "hints")
        heard.get_message(timeout=1)
        await store.queues.resume("default")
        message = None
        while message is None:
            message = heard.get_message(timeout=5)
        assert message["channel"] == (head + "hints").encode()
