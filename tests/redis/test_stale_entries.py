"""Entries of an index that disagree with the job's record: a script that was refused a command may leave one.

The record decides: such an entry moves no job, and goes.
"""

import struct
from typing import Any

import pytest

from tests.redis.places import misplaced
from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import claim_ids, claim_one, completed, enqueue_one, look, open_lease, put, running, settle
from windlass.core.ids import JobId
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.redis.store import RedisStore

INDEXES = ("ready", "tenant_queues", "due")
RULES: list[dict[str, Any]] = [{}, {"max_concurrency": 10}, {"fair": True}, {"ageing": SECOND}]


async def command(store: RedisStore, word: str, index: str, *more: Any) -> Any:
    (key,) = store._access.server.keys.of_queue("default", (index,))
    return await store._access.server.wire.command(word, key, *more, seconds=5)


async def record(store: RedisStore, id_: JobId) -> Any:
    return await command(store, "HGET", "jobs", id_)


async def entries(store: RedisStore) -> dict[str, list[Any]]:
    """By index: scores and members, as ZADD takes them."""
    found = {}
    for index in INDEXES:
        pairs = await command(store, "ZRANGE", index, 0, -1, "WITHSCORES")
        found[index] = [word for member, score in pairs for word in (score, member)]
    return found


async def put_back(store: RedisStore, before: dict[str, list[Any]]) -> None:
    for index, words in before.items():
        if words:
            await command(store, "ZADD", index, *words)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("ended", [False, True])
async def test_a_job_that_runs_or_has_ended_is_neither_admitted_nor_claimed(
    store: RedisStore, clock: ManualClock, rules: dict[str, Any], ended: bool
) -> None:
    await rule(store, **rules)
    await open_lease(store)
    id_ = await enqueue_one(store, delay=SECOND)
    scheduled = await entries(store)
    clock.advance(2 * SECOND)
    await store.jobs.admit(10)
    pending = await entries(store)
    job = await claim_one(store)
    if ended:
        await settle(store, completed(job))
    before = await record(store, id_)
    await put_back(store, scheduled)
    await put_back(store, pending)
    waiting = [await enqueue_one(store) for _ in range(2)]
    clock.advance(2 * SECOND)
    await store.leases.renew("w1", ["r1"], 30 * SECOND)
    await store.jobs.admit(10)
    await store.jobs.age(10)
    assert await claim_ids(store) == waiting
    assert await record(store, id_) == before
    assert await misplaced(store) == []


async def test_a_job_that_does_not_wait_for_its_key_gets_no_slot_of_it(store: RedisStore) -> None:
    first = await running(store, concurrency_key="k")
    waits = await enqueue_one(store, concurrency_key="k")
    (member,) = await command(store, "ZRANGE", "waiting_for_key", 0, -1)
    await settle(store, completed(first))
    second = await claim_one(store)
    assert second.id == waits
    await command(store, "ZADD", "waiting_for_key", 0, member)
    await settle(store, completed(second))
    assert (await look(store, waits)).status is Status.COMPLETED
    assert await misplaced(store) == []


async def test_a_job_that_has_not_ended_is_not_pruned(store: RedisStore, clock: ManualClock) -> None:
    id_ = await put(store, Status.PENDING)
    await command(store, "ZADD", "drop_times", 1, id_)
    clock.advance(1000 * DAY)
    assert await store.operator.prune(10) == []
    assert (await look(store, id_)).status is Status.PENDING
    assert await misplaced(store) == []


async def test_a_job_that_is_not_parked_is_not_freed(store: RedisStore) -> None:
    job = await running(store)
    await command(store, "ZADD", "parked", 0, parked(job.id))
    assert await store._access.call("unpark", "default", (["t"], 10)) == 0
    assert (await look(store, job.id)).status is Status.RUNNING
    assert await misplaced(store) == []


def parked(id_: JobId) -> bytes:
    """An entry of `parked`, of the first type of its queue."""
    return struct.pack(">IQ", 1, 1) + id_.encode()
