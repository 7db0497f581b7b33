"""Claims from Redis: how many trips they take, that each is bounded, and that every index is in step afterwards."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import pytest

from tests.redis.places import misplaced
from tests.support.clock import ManualClock
from tests.support.parts import extended
from tests.support.runners import Runner, new_runner, rule
from tests.support.seed import completed, enqueue, enqueue_one, failed, look, requeued, settle, snoozed
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.records import JobFilter
from windlass.store.redis.connection.wire import Call
from windlass.store.redis.store import RedisStore

TEN = parse_rate("10/s burst 2", "r")


@pytest.fixture
def trips(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each script was sent, to however many queues."""
    counted: Counter[str] = Counter()
    wire = store._access.server.wire
    call, calls = wire.call, wire.calls

    async def count_one(one: Call, seconds: float, *, patient: bool) -> Any:
        counted[one.script.name] += 1
        return await call(one, seconds, patient=patient)

    async def count_several(several: Sequence[Call], seconds: float, *, patient: bool) -> list[Any]:
        if len(several) > 1:  # one alone goes by the other way
            counted[several[0].script.name] += 1
        return await calls(several, seconds, patient=patient)

    monkeypatch.setattr(wire, "call", count_one)
    monkeypatch.setattr(wire, "calls", count_several)
    return counted


async def test_a_claim_from_a_plain_queue_is_one_trip(store: RedisStore, trips: Counter[str]) -> None:
    await enqueue(store, 3)
    runner = await new_runner(store)
    await runner.claim(1)
    trips.clear()
    assert len(await runner.claim()) == 2
    assert trips == {"claim": 1}


async def test_a_claim_from_a_limited_queue_is_one_trip_once_that_is_known(
    store: RedisStore, trips: Counter[str]
) -> None:
    await rule(store, max_concurrency=10)
    await enqueue(store, 3)
    runner = await new_runner(store)
    await runner.claim(1)
    trips.clear()
    assert len(await runner.claim()) == 2
    assert trips == {"claim_limited": 1}


async def test_of_many_queues_only_those_with_work_are_asked(store: RedisStore, trips: Counter[str]) -> None:
    names = tuple(f"q{i}" for i in range(30))
    await store.queues.declare(dict.fromkeys(names, QueueSettings()))
    runner = await new_runner(store)
    await runner.claim(queues=names)
    await enqueue(store, 2, queue="q0")
    await enqueue(store, 2, queue="q17")
    trips.clear()
    jobs = await runner.claim(queues=names)
    assert [job.queue for job in jobs] == ["q0", "q0", "q17", "q17"]
    assert trips == {"claim": 2, "has_work": 1}


async def test_the_best_of_many_types_are_taken_in_their_order(store: RedisStore, clock: ManualClock) -> None:
    ids = []
    for i in range(60):
        ids.append(await enqueue_one(store, type=f"t{i * 7 % 20}"))
        clock.advance(1)
    runner = await new_runner(store)
    types = tuple(f"t{i}" for i in range(20))
    assert [job.id for job in await runner.claim(45, types=types)] == ids[:45]
    assert [job.id for job in await runner.claim(45, types=types)] == ids[45:]


@pytest.mark.parametrize("limit", range(1, 8))
async def test_the_best_of_two_types_are_taken_in_their_order(
    store: RedisStore, clock: ManualClock, limit: int
) -> None:
    ids = []
    for type_ in "aaabaab":  # a claim ends before, at and behind the first of the other type
        ids.append(await enqueue_one(store, type=type_))
        clock.advance(1)
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim(limit, types=("b", "a"))] == ids[:limit]
    assert [job.id for job in await runner.claim(10, types=("b", "a"))] == ids[limit:]
    assert await misplaced(store) == []


async def test_a_job_that_was_put_back_is_claimed_in_one_trip_like_others(
    store: RedisStore, clock: ManualClock, trips: Counter[str]
) -> None:
    runner = await new_runner(store)
    id_ = await enqueue_one(store)
    (job,) = await runner.claim()
    await settle(store, snoozed(job, 5))
    clock.advance(6 * SECOND)
    await store.jobs.admit(10)
    await enqueue(store, 2)
    trips.clear()
    assert id_ in {job.id for job in await runner.claim()}
    assert trips == {"claim": 1}
    assert (await look(store, id_)).attempts[0].outcome == "snoozed"


async def test_very_many_jobs_of_a_key_are_throttled_to_the_microsecond(
    store: RedisStore, clock: ManualClock
) -> None:
    """More than a claim looks at: it goes on from the last of them."""
    await enqueue(store, 500, concurrency_key="k", key_limit=1000, key_rate=TEN)
    runner, start = await new_runner(store), clock.wall()
    first = await runner.claim()
    while await store.signals.has_work(["default"], None):
        assert await runner.claim() == []
    jobs = await _all_of(store)
    assert len(first) == 2
    assert [job.run_at for job in jobs if job.status is Status.SCHEDULED] == [
        to_datetime(start + n * SECOND // 10) for n in range(1, 499)
    ]
    assert await misplaced(store) == []


async def test_hundreds_of_throttled_jobs_do_not_hide_those_that_can_start(
    store: RedisStore, clock: ManualClock
) -> None:
    await enqueue(store, 400, concurrency_key="k", key_limit=1000, key_rate=TEN, priority=1)
    runner = await new_runner(store)
    assert len(await runner.claim(2)) == 2
    plain = await enqueue_one(store)
    assert [job.id for job in await runner.claim()] == [plain]


async def test_token_buckets_that_are_full_again_go(store: RedisStore, clock: ManualClock) -> None:
    for i in range(300):
        await enqueue_one(store, concurrency_key=f"k{i}", key_rate=TEN)
    runner = await new_runner(store)
    for _ in range(3):
        await runner.claim()
    (key,) = store._access.server.keys.of_queue("default", ("token_buckets",))
    wire = store._access.server.wire
    assert await wire.command("HLEN", key, seconds=5) == 300
    clock.advance(SECOND)
    await store.operator.prune(10)
    assert await wire.command("HLEN", key, seconds=5) == 0


async def test_a_large_queue_that_becomes_fair_gets_all_its_tenant_queues(store: RedisStore) -> None:
    for tenant in "abcde":
        await enqueue(store, 150, tenant=tenant)
    await rule(store, fair=True)
    while (await store.jobs.admit(1000)).next_due_in == 0:
        pass
    assert await misplaced(store) == []
    runner = await new_runner(store)
    jobs = await runner.claim(50)
    assert Counter(job.tenant for job in jobs) == dict.fromkeys("abcde", 10)


async def test_a_reason_is_gone_when_the_job_runs(store: RedisStore) -> None:
    runner = await new_runner(store)
    await enqueue_one(store)
    (job,) = await runner.claim()
    await settle(store, requeued(job))
    (again,) = await runner.claim()
    assert (await look(store, again.id)).reason is None


@pytest.mark.parametrize("seed", [0, 1, *extended(range(2, 6))])
async def test_whatever_is_claimed_by_whatever_rules_every_index_is_in_step(
    store: RedisStore, clock: ManualClock, seed: int
) -> None:
    random = Random(seed)
    runners = [await new_runner(store, f"r{i}") for i in range(2)]
    claimed = 0
    for _ in range(60):
        await _enqueue_jobs(store, random)
        if random.random() < 0.15:
            await _change_rules(store, random)
        runner = random.choice(runners)
        types = random.choice([("t",), ("t", "u"), ("t", "u", "v", "w", "x")])
        claimed += len(await runner.claim(random.choice([1, 5, 30]), types=types))
        await _end_some(store, runner, random)
        clock.advance(random.choice([1, 1000, 100_000, SECOND]))
        verbs: list[Callable[[int], Awaitable[object]]] = [store.jobs.admit, store.jobs.expire, store.operator.prune]
        await random.choice(verbs)(50)
        assert await misplaced(store) == []
    assert claimed > 50


async def _enqueue_jobs(store: RedisStore, random: Random) -> None:
    fields: dict[str, Any] = {"type": random.choice("tuvwx"), "priority": random.choice([0, 0, 5, -3])}
    if random.random() < 0.6:
        fields["tenant"] = random.choice("abc")
    if random.random() < 0.4:
        fields |= {"concurrency_key": random.choice("kl"), "key_limit": 5}
        if random.random() < 0.7:
            fields |= {"key_rate": TEN}
    if random.random() < 0.3:
        fields["rate_cost"] = random.randint(1, 4)
    if random.random() < 0.3:
        fields["expires"] = random.choice([1000, SECOND])
    await enqueue(store, random.randint(1, 6), **fields)


async def _change_rules(store: RedisStore, random: Random) -> None:
    rules: dict[str, Any] = {"fair": random.random() < 0.5}
    if random.random() < 0.5:
        rules["max_concurrency"] = random.randint(1, 60)
    if random.random() < 0.5:
        rules["rate_limit"] = parse_rate(random.choice(["5/s", "100/s burst 20", "1000/s"]), "r")
    if rules["fair"] and random.random() < 0.5:
        rules["weights"] = {"a": 3.0}
    await rule(store, **rules)


async def _end_some(store: RedisStore, runner: Runner, random: Random) -> None:
    ended = [job for job in runner.held if random.random() < 0.7]
    runner.held = [job for job in runner.held if job not in ended]
    for job in ended:
        await settle(store, random.choice([completed, completed, failed, requeued])(job))


async def _all_of(store: RedisStore) -> list[Any]:
    page = await store.operator.list(JobFilter(), 1000, None)
    return sorted(page.items, key=lambda job: job.id)
