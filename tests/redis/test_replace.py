"""Deciding outside and writing what was decided: many at once in a few trips, and no change is lost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import redis.asyncio

from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import (
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    failed,
    look,
    open_lease,
    put,
    request,
    running,
    settle,
    status_of,
)
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.records import Settled, Transition
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator import decide, operator_verbs
from windlass.store.redis.operator.read_records import JobView, read_anywhere, read_records
from windlass.store.redis.operator.replace import Replaced, replace_all
from windlass.store.redis.records.ending import cancelled
from windlass.store.redis.store import RedisStore


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each script was called for anything, from now on."""
    counted: Counter[str] = Counter()
    original = Access.call_queues

    async def count(self: Access, name: str, requests: Mapping[str, Any]) -> Any:
        if requests:
            counted[name] += 1
        return await original(self, name, requests)

    monkeypatch.setattr(Access, "call_queues", count)
    return counted


async def test_a_job_that_changed_since_is_reported_and_the_others_are_done(
    store: RedisStore, clock: ManualClock
) -> None:
    ids = await enqueue(store, 3)
    access = store._access
    seen = (await read_records(access, {"default": ids})).jobs
    await store.operator.change([ids[1]], JobChange(priority=7))
    pairs = [(seen[id_].record, cancelled(seen[id_].record, "enough", clock.wall())) for id_ in ids]
    replaced = await replace_all(access, {"default": pairs})
    assert replaced == {
        ids[0]: Replaced(Status.CANCELLED),
        ids[1]: Replaced(None),
        ids[2]: Replaced(Status.CANCELLED),
    }
    found = await look(store, ids[1])
    assert (found.status, found.priority) == (Status.PENDING, 7)


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch, store: RedisStore) -> list[JobId]:
    """Whenever a process has read jobs to decide about them, the ones named here are changed by another."""
    named: list[JobId] = []
    original = read_anywhere

    async def see_and_change(access: Access, ids: Any) -> JobView:
        found = await original(access, ids)
        taken, named[:] = named[:], []
        if taken:
            await store.operator.change(taken, JobChange(priority=5))
            named[:] = taken if len(taken) > 1 else []
        return found

    monkeypatch.setattr(decide, "read_anywhere", see_and_change)
    return named


async def test_what_another_changed_meanwhile_is_decided_again(store: RedisStore, disturbed: list[JobId]) -> None:
    ids = await enqueue(store, 3)
    disturbed.append(ids[1])
    assert await store.operator.change(ids, JobChange(payload="{}", delay=DAY)) == [
        Transition(id_, Status.SCHEDULED, done=True) for id_ in ids
    ]
    found = await look(store, ids[1])
    assert (found.priority, found.payload) == (5, {}), "both changes hold"


async def test_a_job_that_is_changed_all_the_time_is_given_up(store: RedisStore, disturbed: list[JobId]) -> None:
    ids = await enqueue(store, 2)
    disturbed += ids
    with pytest.raises(StoreUnavailable, match="keeps being changed by other processes"):
        await store.operator.cancel(ids, "")
    disturbed.clear()


async def test_hundreds_of_outcomes_take_a_few_trips(store: RedisStore, calls: Counter[str]) -> None:
    await enqueue(store, 100)
    await enqueue(store, 50, concurrency_key="k", key_limit=1000)
    await open_lease(store)
    jobs = await store.jobs.claim(request(limit=150, most=150))
    assert len(jobs) == 150
    calls.clear()
    batch = [failed(job) if place % 3 else completed(job) for place, job in enumerate(jobs)]
    assert await store.jobs.settle(batch) == [Settled.SETTLED] * 150
    assert calls == {"complete": 1, "read_records": 1, "replace_records": 1}
    totals = (await store.operator.counts()).totals
    assert (totals["completed"], totals["failed"]) == (50, 100)


async def test_hundreds_of_jobs_are_cancelled_and_revived_in_a_few_trips(
    store: RedisStore, calls: Counter[str]
) -> None:
    ids = await enqueue(store, 200) + await enqueue(store, 200, queue="other")
    calls.clear()
    moved = await store.operator.cancel(ids, "enough")
    assert moved == [Transition(id_, Status.CANCELLED, done=True) for id_ in ids]
    assert calls == {"read_records": 4, "replace_records": 4}, "by no more than a hundred at a time"
    calls.clear()
    assert all(each is not None and each.done for each in await store.operator.retry(ids))
    assert calls == {"read_records": 4, "replace_records": 4}


async def test_a_waiting_claim_is_notified_that_a_full_queue_has_room(store: RedisStore, clock: ManualClock) -> None:
    await rule(store, max_concurrency=1)
    first = await running(store)
    await enqueue(store, 2)
    server = store._access.server
    listener = redis.asyncio.Redis.from_url(server.address.dsn)
    pubsub = listener.pubsub()
    await pubsub.subscribe(server.keys.channel("default"))
    assert (await pubsub.get_message(timeout=10))["type"] == "subscribe"
    await settle(store, completed(first))
    assert (await pubsub.get_message(timeout=10))["type"] == "message"
    second = await claim_one(store)
    await settle(store, failed(second))
    assert (await pubsub.get_message(timeout=10))["type"] == "message"
    await pubsub.aclose()
    await listener.aclose()


@pytest.mark.parametrize("window", [None, 5 * SECOND], ids=["without a window", "with a window"])
async def test_nothing_is_left_of_a_key_when_all_is_over(
    store: RedisStore, clock: ManualClock, window: int | None
) -> None:
    job = await running(store, idempotency_key="k", idempotency_window=window)
    await settle(store, completed(job))
    clock.advance(400 * DAY)
    await store.operator.prune(10)
    assert await left_of(store) == {"queue", "counts", "types", "pending_counts", "leases"}


async def left_of(store: RedisStore) -> set[str]:
    """The keys that the default queue has on the server."""
    server = store._access.server
    client = redis.asyncio.Redis.from_url(server.address.dsn)
    found = [bytes(name) async for name in client.scan_iter(f"{server.keys.prefix}:{{default}}:*")]
    await client.aclose()
    return {name.decode().rsplit(":", 1)[1] for name in found}


async def test_a_job_with_everything_leaves_nothing(store: RedisStore, clock: ManualClock) -> None:
    """Whatever places it was in, it is in none of them after its end and a year."""
    await rule(store, fair=True)
    fields: dict[str, Any] = {"parent": "p" * 36, "tenant": "a", "expires": DAY, "key_strict": True}
    first = await running(store, idempotency_key="k", concurrency_key="c", **fields)
    second = await enqueue_one(store, idempotency_key="l", concurrency_key="c", **fields)
    assert await status_of(store, second) is Status.BLOCKED
    await settle(store, failed(first))
    await store.operator.run_now([first.id])
    await settle(store, completed(await claim_one(store)))
    last = await claim_one(store)
    assert last.id == second
    await store.operator.cancel([second], "stop")
    await settle(store, failed(last))
    assert await status_of(store, second) is Status.CANCELLED
    for _ in range(2):
        clock.advance(400 * DAY)
        await store.operator.prune(10)
    assert await left_of(store) <= {"queue", "counts", "types", "pending_counts", "leases", "fairness"}


async def test_a_job_that_changes_between_reading_and_dropping_is_not_deleted(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await put(store, Status.DEAD, payload='{"n": 1}')
    version = (await look(store, id_)).version

    async def read_and_change(access: Access, ids: Iterable[JobId]) -> JobView:
        view = await read_anywhere(access, ids)
        await store.operator.change([id_], JobChange(payload='{"n": 2}'))
        return view

    monkeypatch.setattr(operator_verbs, "read_anywhere", read_and_change)
    assert await store.operator.delete([id_], {id_: version}) == [
        Transition(id_, Status.DEAD, done=False, stale=True)
    ]
    assert (await look(store, id_)).payload == {"n": 2}
