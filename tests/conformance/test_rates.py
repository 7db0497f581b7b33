"""rate_limit: the cost of what starts in any window is at most what the rate brings in it, and a burst."""

import asyncio
from random import Random

from tests.support.clock import ManualClock
from tests.support.runners import Runner, new_runner, rule, within_rate
from tests.support.seed import enqueue, enqueue_one, look, put
from windlass.core.flow.queue import NO_RATE, QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.store.contract import Store

HOUR: Micros = 3600 * SECOND


async def drain(runner: Runner, clock: ManualClock, step: Micros, steps: int) -> list[tuple[Micros, int]]:
    """Claim all that may start, again and again: the starts by the store's own word."""
    starts = []
    for _ in range(steps):
        starts += [(job.claimed_at, 1) for job in await runner.claim()]
        await runner.complete()
        clock.advance(step)
    return starts


async def test_a_burst_at_once_then_as_the_rate_brings_them(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("10/s burst 5", "r"))
    await enqueue(store, 30)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 5
    assert await runner.claim() == []
    clock.advance(SECOND // 10 - 1)
    assert await runner.claim() == []
    clock.advance(1)
    assert len(await runner.claim()) == 1
    clock.advance(3 * SECOND // 10)
    assert len(await runner.claim()) == 3


async def test_every_window_holds_over_several_runners(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("10/s burst 4", "r")
    await rule(store, rate_limit=rate)
    await enqueue(store, 300)
    runners = [await new_runner(store, f"r{i}") for i in range(3)]
    random, starts = Random(6), []
    for _ in range(100):
        got = await asyncio.gather(*(runner.claim(random.randint(1, 8)) for runner in runners))
        starts += [(job.claimed_at, 1) for jobs in got for job in jobs]
        clock.advance(random.choice([1, 1000, 33_333, 100_000, 400_000]))
    assert within_rate(starts, rate)
    assert len(starts) > 40, "it must not be kept by giving nothing"


async def test_the_rate_is_used_up(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("10/s", "r"))
    await enqueue(store, 200)
    starts = await drain(await new_runner(store), clock, SECOND // 20, 200)
    assert 105 <= len(starts) <= 110


async def test_an_hour_without_claims_saves_up_no_more_than_a_burst(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("10/s burst 20", "r")
    await rule(store, rate_limit=rate)
    await enqueue(store, 100)
    runner = await new_runner(store)
    starts = await drain(runner, clock, SECOND // 10, 5)
    clock.advance(HOUR)
    starts += await drain(runner, clock, SECOND // 10, 30)
    assert within_rate(starts, rate)
    assert len(starts) == 24 + 49


async def test_a_clock_that_was_set_back_lets_no_more_start(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("10/s burst 5", "r")
    await rule(store, rate_limit=rate)
    await enqueue(store, 200)
    runner = await new_runner(store)
    starts = await drain(runner, clock, SECOND // 10, 10)
    clock.jump_wall(-2 * SECOND)
    starts += await drain(runner, clock, SECOND // 10, 50)
    assert within_rate(starts, rate)
    assert len(starts) > 30


async def test_a_clock_that_was_an_hour_ahead_for_a_moment_stops_nothing_for_an_hour(
    store: Store, clock: ManualClock
) -> None:
    rate = parse_rate("10/s burst 5", "r")
    await rule(store, rate_limit=rate)
    await rule(store, "keyed")
    await enqueue(store, 50)
    await enqueue_one(store, queue="keyed", concurrency_key="k", key_rate=rate, rate_cost=5)
    runner = await new_runner(store)
    clock.jump_wall(HOUR)
    assert len(await runner.claim()) == 5
    assert len(await runner.claim(queues=("keyed",))) == 1
    clock.jump_wall(-HOUR)
    await runner.complete()
    await store.operator.prune(10)
    await enqueue_one(store, queue="keyed", concurrency_key="k", key_rate=rate)
    assert await runner.claim() == [], "nothing is given away either"
    clock.advance(SECOND // 10)
    assert len(await runner.claim()) == 1
    assert len(await runner.claim(queues=("keyed",))) == 1


async def test_a_job_pays_what_it_costs(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("10/s", "r")
    await rule(store, rate_limit=rate)
    ids = [await enqueue_one(store, rate_cost=cost) for cost in (4, 5, 3, 1)]
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == ids[:2], "no job is overtaken by a cheaper one"
    clock.advance(2 * SECOND // 10)
    assert [job.id for job in await runner.claim()] == [ids[2]]
    clock.advance(SECOND // 10)
    assert [job.id for job in await runner.claim()] == [ids[3]]


async def test_a_job_that_costs_more_than_a_burst_empties_a_full_token_bucket(
    store: Store, clock: ManualClock
) -> None:
    await rule(store, rate_limit=parse_rate("1/s burst 3", "r"))
    first = await enqueue_one(store)
    dear = await enqueue_one(store, rate_cost=50)
    last = await enqueue_one(store)
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == [first]
    clock.advance(SECOND - 1)
    assert await runner.claim() == []
    clock.advance(1)
    assert [job.id for job in await runner.claim()] == [dear]
    clock.advance(SECOND)
    assert [job.id for job in await runner.claim()] == [last]


async def test_a_lower_rate_holds_at_once(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("100/s", "r"))
    await enqueue(store, 300)
    runner = await new_runner(store)
    await runner.claim(50)
    await rule(store, rate_limit=parse_rate("2/m burst 1", "r"))
    assert len(await runner.claim()) <= 1
    clock.advance(29 * SECOND)
    assert await runner.claim() == []
    clock.advance(SECOND)
    assert len(await runner.claim()) == 1


async def test_a_higher_rate_holds_at_once(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("1/h", "r"))
    await enqueue(store, 50)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 1
    await rule(store, rate_limit=parse_rate("10/s", "r"))
    clock.advance(SECOND)
    assert len(await runner.claim()) == 10


async def test_a_rate_that_is_lifted_holds_no_more(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(rate_limit=parse_rate("1/h", "r"))})
    await enqueue(store, 5)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 1
    await rule(store, rate_limit=NO_RATE)
    assert len(await runner.claim()) == 4


async def test_a_wait_loses_nothing(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("1/m", "r"))
    _, second = await enqueue(store, 2)
    runner = await new_runner(store)
    await runner.claim()
    await runner.claim()
    job = await look(store, second)
    assert (job.status, job.attempt) == (Status.PENDING, 0)


async def test_nothing_is_claimed_ahead_where_tokens_are_few(store: Store) -> None:
    await rule(store, rate_limit=parse_rate("50/s", "r"))
    await enqueue(store, 100)
    runner = await new_runner(store)
    assert len(await runner.claim(10, free=3)) == 3


async def test_jobs_are_claimed_ahead_where_there_are_many_tokens(store: Store) -> None:
    await rule(store, rate_limit=parse_rate("1000/s", "r"))
    await enqueue(store, 30)
    runner = await new_runner(store)
    assert len(await runner.claim(10, free=3)) == 10


async def test_types_that_the_runner_does_not_know_cost_nothing(store: Store) -> None:
    await rule(store, rate_limit=parse_rate("2/h", "r"))
    await put(store, Status.PENDING, type="strange", priority=9)
    ids = await enqueue(store, 2)
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == sorted(ids)


async def test_a_rate_and_a_limit_hold_both(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("10/s burst 5", "r"), max_concurrency=3)
    await enqueue(store, 20)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 3
    await runner.complete()
    assert len(await runner.claim()) == 2
    clock.advance(SECOND)
    assert len(await runner.claim()) == 1


async def test_a_queue_without_tokens_is_no_work_until_they_come(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("1/s", "r"))
    await enqueue(store, 3)
    runner = await new_runner(store)
    assert await store.signals.has_work(["default"], None) is True
    await runner.claim()
    assert await store.signals.has_work(["default"], None) is False
    clock.advance(SECOND)
    assert await store.signals.has_work(["default"], None) is True


async def test_a_claim_kept_short_by_the_cost_of_the_next_job_is_not_woken_before_it_can_pay(
    store: Store, clock: ManualClock
) -> None:
    await rule(store, rate_limit=parse_rate("10/s", "r"))
    await enqueue_one(store, rate_cost=8)
    await enqueue_one(store, rate_cost=5)
    runner = await new_runner(store)
    await runner.claim()
    assert await runner.claim() == []
    assert await store.signals.has_work(["default"], None) is False
    clock.advance(3 * SECOND // 10)
    assert await store.signals.has_work(["default"], None) is True
    assert len(await runner.claim()) == 1


async def test_a_wait_ends_when_tokens_come(store: Store) -> None:
    await rule(store, rate_limit=parse_rate("20/s burst 1", "r"))
    await enqueue(store, 3)
    runner = await new_runner(store)
    await runner.claim()
    assert await runner.claim() == []
    assert await store.signals.wait(store.signals.cursor(), 20) is True


async def test_a_worker_that_is_kept_short_by_a_rate_asks_no_oftener_than_jobs_start(
    store: Store, clock: ManualClock
) -> None:
    """The way of an idle runner: look, wait, claim when there is work."""
    await rule(store, rate_limit=parse_rate("10/s burst 1", "r"))
    await enqueue(store, 20)
    runner, claims, started = await new_runner(store), 0, 0
    for _ in range(1000):
        if await store.signals.has_work(["default"], ("t",)):
            claims += 1
            started += len(await runner.claim())
        clock.advance(SECOND // 500)
    assert started == 20
    assert claims <= 2 * started + 1
