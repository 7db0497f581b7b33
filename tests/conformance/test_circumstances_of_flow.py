"""circumstances, where keys, limits, rates and tenants hold a job up: who, how many, until when."""

from tests.conformance.test_circumstances import around
from tests.support.clock import ManualClock
from tests.support.key_queues import enqueue_with_key, look_again, take
from tests.support.runners import new_runner, rule
from tests.support.seed import completed, enqueue, enqueue_one, failed, settle, worker_info
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND, to_micros
from windlass.core.status import Status
from windlass.core.why.explain import Why, explain
from windlass.core.why.facts import Count
from windlass.store.contract import Store


async def why(store: Store, id_: str) -> Why:
    """With a worker that would take it."""
    await store.workers.beat(worker_info())
    return explain(await around(store, id_))


async def test_waiting_for_its_key_it_names_the_holder_and_how_many_are_before_it(
    store: Store, clock: ManualClock
) -> None:
    ids = []
    for _ in range(4):
        ids += await enqueue_with_key(store)
        clock.advance(SECOND)
    (first,) = await take(store)
    clock.advance(5 * SECOND)
    found = await around(store, ids[3])
    assert (found.position.ahead_for_key, found.position.slots) == (Count(2), Count(1))
    assert [(each.id, each.status, each.since) for each in found.holders] == [
        (first.id, Status.RUNNING, first.claimed_at)
    ]
    reported = (await why(store, ids[3])).first
    assert (reported.code, reported.jobs, reported.count) == ("key_held", (first.id,), 2)
    assert (await around(store, ids[1])).position.ahead_for_key == Count(0)


async def test_a_key_queue_is_ordered_by_priority_unless_the_order_is_strict(
    store: Store, clock: ManualClock
) -> None:
    for strict, expected in ((None, Count(0)), (True, Count(1))):
        key = f"key {strict}"
        await enqueue_with_key(store, 2, key, key_strict=strict)
        clock.advance(SECOND)
        (urgent,) = await enqueue_with_key(store, 1, key, key_strict=strict, priority=9)
        await look_again(store)
        assert (await around(store, urgent)).position.ahead_for_key == expected


async def test_others_keys_and_queues_are_not_its_own(store: Store) -> None:
    await enqueue_with_key(store, 3, "other")
    await enqueue_with_key(store, 3, "k", queue="other")
    ids = await enqueue_with_key(store, 2)
    await look_again(store)
    found = await around(store, ids[1])
    assert (found.position.ahead_for_key, found.position.slots) == (Count(0), Count(1))
    assert [each.id for each in found.holders] == ids[:1]


async def test_a_strict_holder_that_failed_tells_when_it_is_tried_again(store: Store, clock: ManualClock) -> None:
    first, second = await enqueue_with_key(store, 2, key_strict=True)
    (job,) = await take(store)
    await settle(store, failed(job))
    found = await around(store, second)
    (holder,) = found.holders
    assert (holder.id, holder.status) == (first, Status.FAILED)
    assert holder.run_at > clock.wall()
    reported = await why(store, second)
    assert reported.earliest is not None
    assert to_micros(reported.earliest) >= holder.run_at


async def test_when_the_holder_is_done_the_next_waits_for_nothing(store: Store) -> None:
    ids = await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await settle(store, completed(job))
    await look_again(store)
    assert (await why(store, ids[1])).first.code == "next"


async def test_a_limit_that_is_reached_names_what_runs(store: Store) -> None:
    await rule(store, max_concurrency=2)
    ids = await enqueue(store, 3)
    runner = await new_runner(store)
    running = [job.id for job in await runner.claim()]
    assert len(running) == 2
    (waiting,) = set(ids) - set(running)
    reported = (await why(store, waiting)).first
    assert (reported.code, set(reported.jobs), reported.count) == ("concurrency_limit", set(running), 2)
    await runner.complete(1)
    assert (await why(store, waiting)).first.code == "next"


async def test_a_rate_that_is_used_up_tells_when_tokens_come(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("1/m burst 2", "r"))
    await enqueue(store, 2)
    clock.advance(SECOND)
    last = await enqueue_one(store)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 2
    begun = clock.wall()
    clock.advance(10 * SECOND)
    reported = await why(store, last)
    assert reported.first.code == "rate_limit"
    assert reported.first.until is not None
    assert to_micros(reported.first.until) == begun + 60 * SECOND
    assert reported.earliest == reported.first.until
    clock.advance(50 * SECOND)
    assert (await why(store, last)).first.code == "next"
    assert [job.id for job in await runner.claim()] == [last]


async def test_a_key_that_has_used_up_its_rate_tells_when_tokens_come(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("1/m", "r")
    first, second = await enqueue_with_key(store, 2, key_rate=rate, key_limit=2)
    runner = await new_runner(store)
    assert [job.id for job in await runner.claim()] == [first]
    begun = clock.wall()
    reported = await why(store, second)
    assert reported.first.code == "key_rate"
    assert reported.first.until is not None
    assert to_micros(reported.first.until) == begun + 60 * SECOND


async def test_in_a_fair_queue_it_is_behind_its_own_tenants_jobs_and_beside_others(
    store: Store, clock: ManualClock
) -> None:
    await rule(store, fair=True)
    await enqueue(store, 5, tenant="big")
    await enqueue(store, 2, tenant="small")
    await enqueue(store, 1)
    await enqueue(store, 1, tenant="small", priority=3)
    clock.advance(SECOND)
    last = await enqueue_one(store, tenant="small")
    place = (await around(store, last)).position
    assert (place.ahead, place.higher_priority, place.same_tenant, place.same_priority) == (
        Count(9),
        Count(1),
        Count(2),
        Count(8),
    )
    assert set(place.tenants) == {"", "big", "small"}
    reported = (await why(store, last)).first
    assert (reported.code, reported.count) == ("behind", 2)


async def test_a_closed_queue_still_runs_what_it_has(store: Store) -> None:
    id_ = await enqueue_one(store)
    await store.queues.close("default")
    assert [reason.code for reason in (await why(store, id_)).reasons] == ["next", "closed"]
