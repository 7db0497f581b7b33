"""max_concurrency: what runs in a queue, over all runners, never exceeds it."""

import asyncio

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import (
    LEASE,
    enqueue,
    enqueue_one,
    failed,
    let_lapse,
    open_lease,
    request,
    requeued,
    settle,
)
from windlass.core.flow.queue import NO_LIMIT, QueueSettings
from windlass.core.moments import SECOND
from windlass.store.contract import Store


async def test_no_more_run_than_the_limit(store: Store) -> None:
    await rule(store, max_concurrency=3)
    await enqueue(store, 10)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 3
    assert await runner.claim() == []
    await runner.complete(2)
    assert len(await runner.claim()) == 2
    assert await runner.claim() == []


async def test_the_limit_holds_over_all_runners(store: Store) -> None:
    await rule(store, max_concurrency=5)
    await enqueue(store, 20)
    runners = [await new_runner(store, f"r{i}") for i in range(4)]
    for _ in range(8):
        await asyncio.gather(*(runner.claim(2) for runner in runners))
        assert sum(len(runner.held) for runner in runners) <= 5
    assert sum(len(runner.held) for runner in runners) == 5
    for _ in range(20):
        for runner in runners:
            await runner.complete(1)
            await runner.claim(2)
            assert sum(len(each.held) for each in runners) <= 5


async def test_every_job_of_a_limited_queue_runs_in_the_end(store: Store) -> None:
    await rule(store, max_concurrency=2)
    ids = await enqueue(store, 9)
    runners = [await new_runner(store, f"r{i}") for i in range(3)]
    done: list[str] = []
    for _ in range(20):
        for runner in runners:
            done += [job.id for job in await runner.claim()]
            await runner.complete()
    assert sorted(done) == sorted(ids)


async def test_what_one_runner_leaves_another_may_take(store: Store) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 4)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    assert len(await first.claim()) == 2
    assert await second.claim() == []
    await first.complete()
    assert len(await second.claim()) == 2
    assert await first.claim() == []


async def test_a_limit_that_is_lowered_below_what_runs_lets_nothing_start_until_it_fits(store: Store) -> None:
    await rule(store, max_concurrency=5)
    await enqueue(store, 20)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    await first.claim(3)
    await second.claim(2)
    await rule(store, max_concurrency=2)
    assert (await first.claim(), await second.claim()) == ([], [])
    await first.complete(2)
    assert (await first.claim(), await second.claim()) == ([], [])
    await second.complete(1)
    assert (await first.claim(), await second.claim()) == ([], [])
    await second.complete(1)
    assert len([*await first.claim(), *await second.claim()]) == 1


async def test_a_limit_that_is_raised_is_used(store: Store) -> None:
    await rule(store, max_concurrency=1)
    await enqueue(store, 20)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    assert len(await first.claim(4)) == 1
    await rule(store, max_concurrency=6)
    await first.claim(4)
    await second.claim(4)
    assert len(first.held) + len(second.held) == 6


async def test_a_limit_that_is_lifted_holds_no_more(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(max_concurrency=1)})
    await enqueue(store, 5)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 1
    await rule(store, max_concurrency=NO_LIMIT)
    assert len(await runner.claim()) == 4


async def test_what_ran_before_there_was_a_limit_counts(store: Store) -> None:
    await enqueue(store, 6)
    runner = await new_runner(store)
    await runner.claim(3)
    await rule(store, max_concurrency=4)
    assert len(await runner.claim()) == 1


async def test_what_fails_or_is_requeued_makes_room(store: Store) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 4)
    runner = await new_runner(store)
    one, two = await runner.claim()
    await settle(store, failed(one))
    await settle(store, requeued(two))
    runner.held = []
    assert len(await runner.claim()) == 2


async def test_a_runner_that_is_seen_to_end_frees_what_it_held(store: Store) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 4)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    await first.claim()
    assert await second.claim() == []
    await first.end()
    assert len(await second.claim()) == 2


async def test_the_rescue_of_a_dead_runner_frees_what_it_held(store: Store, clock: ManualClock) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 4)
    first = await new_runner(store, "r1", LEASE)
    await first.claim()
    await let_lapse(store, clock)
    second = await new_runner(store, "r2")
    assert await second.claim() == []
    await store.leases.rescue(10)
    assert len(await second.claim()) == 2


async def test_a_claim_that_is_repeated_takes_no_more(store: Store) -> None:
    await rule(store, max_concurrency=3)
    await enqueue(store, 10)
    await open_lease(store)
    asked = request()
    first = await store.jobs.claim(asked)
    assert [job.id for job in await store.jobs.claim(asked)] == [job.id for job in first]
    assert len(first) == 3


async def test_nothing_is_claimed_ahead_where_a_limit_is_near(store: Store) -> None:
    await rule(store, max_concurrency=50)
    await enqueue(store, 100)
    runner = await new_runner(store)
    assert len(await runner.claim(10, free=4)) == 4
    assert len(await runner.claim(10, free=0)) == 0
    assert len(await runner.claim(10)) == 10, "all of them can start"


async def test_jobs_are_claimed_ahead_where_a_limit_is_far(store: Store) -> None:
    await rule(store, max_concurrency=1000)
    await enqueue(store, 30)
    runner = await new_runner(store)
    assert len(await runner.claim(10, free=4)) == 10


async def test_other_queues_do_not_count(store: Store) -> None:
    await rule(store, "few", max_concurrency=1)
    await enqueue(store, 3, queue="few")
    await enqueue(store, 3, queue="many")
    runner = await new_runner(store)
    jobs = await runner.claim(queues=("few", "many"))
    assert [job.queue for job in jobs] == ["few", "many", "many", "many"]


async def test_the_best_of_a_limited_queue_is_taken_first(store: Store) -> None:
    await rule(store, max_concurrency=1)
    await enqueue_one(store)
    high = await enqueue_one(store, priority=5)
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == [high]


async def test_a_paused_queue_with_a_limit_gives_nothing(store: Store, clock: ManualClock) -> None:
    await rule(store, max_concurrency=5, fair=True)
    await enqueue(store, 3)
    await store.queues.pause("default", SECOND)
    runner = await new_runner(store)
    assert await runner.claim() == []
    clock.advance(SECOND)
    assert len(await runner.claim()) == 3


async def test_a_full_queue_is_no_work_until_something_ends(store: Store) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 5)
    runner = await new_runner(store)
    assert await store.signals.has_work(["default"], None) is True
    await runner.claim()
    assert await store.signals.has_work(["default"], None) is False
    await runner.complete(1)
    assert await store.signals.has_work(["default"], None) is True


async def test_what_a_runner_does_not_use_any_more_is_others_after_the_limit_was_lowered(store: Store) -> None:
    """It has other things to do, and does not ask again for long."""
    await rule(store, max_concurrency=10)
    await enqueue(store, 40)
    busy, other = await new_runner(store, "r1"), await new_runner(store, "r2")
    assert len(await busy.claim(10)) == 10
    await busy.complete(9)
    await rule(store, max_concurrency=3)
    assert len(await other.claim(10)) == 2
    assert await other.claim(10) == []
