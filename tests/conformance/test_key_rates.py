"""key_rate: how many jobs with one concurrency key may start in a while."""

from random import Random

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule, within_rate
from tests.support.seed import enqueue, enqueue_one, look, requeued, settle
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.contract import Store

REASON = "rate limit of its key"
TEN = parse_rate("10/s burst 2", "r")


async def test_a_key_starts_no_more_than_its_rate(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 10, concurrency_key="k", key_limit=10, key_rate=TEN)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 2
    for _ in range(8):
        clock.advance(SECOND // 10 - 1)
        await store.jobs.admit(10)
        assert await runner.claim() == []
        clock.advance(1)
        await store.jobs.admit(10)
        assert len(await runner.claim()) == 1


async def test_a_job_without_tokens_is_scheduled_for_the_very_moment(store: Store, clock: ManualClock) -> None:
    ids = await enqueue(store, 4, concurrency_key="k", key_limit=10, key_rate=TEN)
    runner = await new_runner(store)
    await runner.claim()
    start = clock.wall()
    third, fourth = [await look(store, id_) for id_ in sorted(ids)[2:]]
    for job, moment in ((third, start + SECOND // 10), (fourth, start + 2 * SECOND // 10)):
        assert (job.status, job.reason, job.run_at) == (Status.SCHEDULED, REASON, to_datetime(moment))
        assert job.attempt == 0, "no attempt is counted"


async def test_those_of_a_key_keep_their_order(store: Store, clock: ManualClock) -> None:
    ids = []
    for cost in (2, 1, 2, 1, 1):
        ids.append(await enqueue_one(store, concurrency_key="k", key_limit=10, key_rate=TEN, rate_cost=cost))
        clock.advance(1)
    runner, started = await new_runner(store), []
    for _ in range(40):
        started += [job.id for job in await runner.claim(1)]
        clock.advance(SECOND // 50)
        await store.jobs.admit(10)
    assert started == ids


async def test_a_new_job_does_not_overtake_a_throttled_one(store: Store, clock: ManualClock) -> None:
    fields = {"concurrency_key": "k", "key_limit": 10, "key_rate": TEN}
    await enqueue(store, 2, **fields)
    runner = await new_runner(store)
    await runner.claim()
    dear = await enqueue_one(store, rate_cost=2, **fields)
    assert await runner.claim() == []
    clock.advance(SECOND // 10)
    cheap = await enqueue_one(store, **fields)
    assert await runner.claim() == [], "there is a token, but it is another's"
    clock.advance(SECOND // 10)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [dear]
    clock.advance(SECOND // 10)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [cheap]


async def test_other_keys_and_jobs_without_a_key_go_on(store: Store) -> None:
    await enqueue(store, 5, concurrency_key="k", key_limit=10, key_rate=TEN)
    other = await enqueue(store, 2, concurrency_key="l", key_limit=10, key_rate=TEN)
    plain = await enqueue(store, 3)
    runner = await new_runner(store)
    jobs = {job.id for job in await runner.claim(7)}
    assert len(jobs) == 7
    assert {*other, *plain} < jobs


async def test_every_window_holds(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 60, concurrency_key="k", key_limit=60, key_rate=TEN)
    runners = [await new_runner(store, f"r{i}") for i in range(3)]
    random, starts = Random(7), []
    for _ in range(150):
        jobs = await random.choice(runners).claim(random.randint(1, 5))
        starts += [(job.claimed_at, 1) for job in jobs]
        clock.advance(random.choice([1, 5_000, 20_000, 50_000, 150_000]))
        await store.jobs.admit(100)
    assert within_rate(starts, TEN)
    assert len(starts) == 60


async def test_a_throttled_job_keeps_its_slot(store: Store, clock: ManualClock) -> None:
    ids = await enqueue(store, 4, concurrency_key="k", key_rate=parse_rate("1/s", "r"))
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == [min(ids)]
    await runner.complete()
    assert await runner.claim() == []
    later = [await look(store, id_) for id_ in sorted(ids)[1:]]
    assert [job.status for job in later] == [Status.SCHEDULED, Status.BLOCKED, Status.BLOCKED]
    clock.advance(SECOND)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [sorted(ids)[1]]


async def test_a_job_that_is_requeued_pays_again(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store, concurrency_key="k", key_rate=parse_rate("1/s", "r"))
    runner = await new_runner(store)
    (job,) = await runner.claim()
    await settle(store, requeued(job))
    runner.held = []
    assert await runner.claim() == []
    clock.advance(SECOND)
    await store.jobs.admit(10)
    assert [each.id for each in await runner.claim()] == [job.id]


async def test_a_job_that_costs_more_than_the_burst_of_its_key_starts_with_a_full_token_bucket(
    store: Store, clock: ManualClock
) -> None:
    fields = {"concurrency_key": "k", "key_limit": 5, "key_rate": TEN}
    await enqueue_one(store, **fields)
    dear = await enqueue_one(store, rate_cost=99, **fields)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 1
    clock.advance(SECOND // 10)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [dear]


async def test_both_rates_hold(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("1/s burst 3", "r"))
    await enqueue(store, 5, concurrency_key="k", key_limit=10, key_rate=TEN)
    plain = await enqueue(store, 5)
    runner = await new_runner(store)
    jobs = await runner.claim()
    assert len(jobs) == 3
    assert len({job.id for job in jobs} & set(plain)) == 1
    clock.advance(SECOND)
    await store.jobs.admit(10)
    assert len(await runner.claim()) == 1


async def test_key_rates_hold_in_a_fair_queue(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 5, tenant="a", concurrency_key="k", key_limit=10, key_rate=TEN)
    await enqueue(store, 20, tenant="b")
    runner = await new_runner(store)
    jobs = await runner.claim(10)
    assert sum(job.tenant == "a" for job in jobs) == 2
    assert len(jobs) == 10


async def test_keys_belong_to_a_queue(store: Store) -> None:
    for queue in ("one", "two"):
        await enqueue(store, 3, queue=queue, concurrency_key="k", key_limit=10, key_rate=TEN)
    runner = await new_runner(store)
    assert len(await runner.claim(queues=("one", "two"))) == 4


async def test_a_job_throttled_while_the_clock_was_an_hour_ahead_does_not_wait_for_an_hour(
    store: Store, clock: ManualClock
) -> None:
    ids = await enqueue(store, 4, concurrency_key="k", key_limit=10, key_rate=TEN)
    runner = await new_runner(store)
    clock.jump_wall(3600 * SECOND)
    assert len(await runner.claim()) == 2
    clock.jump_wall(-3600 * SECOND)
    await store.operator.prune(10)
    third, fourth = [await look(store, id_) for id_ in sorted(ids)[2:]]
    assert [job.run_at for job in (third, fourth)] == [to_datetime(clock.wall() + n * SECOND // 10) for n in (1, 2)]
    clock.advance(SECOND // 10)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [third.id]
