"""circumstances: a job and all that may hold it up, as it is."""

from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_ids,
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    failed,
    new_job,
    open_lease,
    put,
    running,
    settle,
    worker_info,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId, new_id
from windlass.core.moments import SECOND, to_micros
from windlass.core.stats.meter import INTERVAL, Meter, histogram, interval_of
from windlass.core.status import Status
from windlass.core.why.explain import explain
from windlass.core.why.facts import MAX_AHEAD, Count, WhyFacts
from windlass.store.contract import Store


async def around(store: Store, id_: JobId) -> WhyFacts:
    """Of a job that must be there."""
    found = await store.operator.why_facts(id_)
    assert found is not None
    return found


async def test_a_job_that_is_not_there_has_none(store: Store) -> None:
    assert await store.operator.why_facts(new_id()) is None


@pytest.mark.parametrize("status", list(Status))
async def test_a_job_in_every_status_has_circumstances_and_an_answer(
    store: Store, clock: ManualClock, status: Status
) -> None:
    id_ = await put(store, status)
    found = await around(store, id_)
    assert (found.job.id, found.job.status, found.now) == (id_, status, clock.wall())
    assert found.job == (await store.operator.get([id_]))[0]
    why = explain(found)
    assert (why.id, why.status) == (id_, status)
    assert why.first.text


async def test_what_is_before_it_is_counted_by_priority_and_rank(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 2, priority=5)
    await enqueue(store, 3)
    clock.advance(SECOND)
    wanted = await enqueue_one(store)
    clock.advance(SECOND)
    await enqueue(store, 4)
    await enqueue(store, 4, priority=-1)
    await enqueue(store, 4, priority=9, queue="other")
    place = (await around(store, wanted)).position
    assert (place.ahead, place.higher_priority) == (Count(5), Count(2))


async def test_what_was_claimed_is_not_before_it_any_more_and_what_is_put_back_is(
    store: Store, clock: ManualClock
) -> None:
    await enqueue(store, 3)
    clock.advance(SECOND)
    wanted = await enqueue_one(store)
    await open_lease(store)
    await claim_ids(store, limit=2)
    assert (await around(store, wanted)).position.ahead == Count(1)
    clock.advance(20 * SECOND)
    await store.tidy()
    await store.tidy()
    assert (await around(store, wanted)).position.ahead == Count(1)


async def test_counting_ends_at_a_bound(store: Store, clock: ManualClock) -> None:
    await store.jobs.enqueue([new_job() for _ in range(MAX_AHEAD + 5)])
    clock.advance(SECOND)
    wanted = await enqueue_one(store)
    assert (await around(store, wanted)).position.ahead == Count(MAX_AHEAD, at_least=True)


async def test_a_job_that_is_not_due_is_told_what_would_be_before_it_now(store: Store, clock: ManualClock) -> None:
    wanted = await enqueue_one(store, delay=60 * SECOND)
    await enqueue(store, 3)
    clock.advance(SECOND)
    assert (await around(store, wanted)).position.ahead == Count(3)


async def test_the_queue_is_as_it_is(store: Store, clock: ManualClock) -> None:
    wanted = await enqueue_one(store, queue="mail")
    await store.queues.change("mail", QueueSettings(max_concurrency=3))
    await store.queues.pause("mail", 60 * SECOND)
    queue = (await around(store, wanted)).queue
    assert (queue.name, queue.paused, queue.rules.max_concurrency) == ("mail", True, 3)
    assert queue.paused_until is not None
    assert to_micros(queue.paused_until) == clock.wall() + 60 * SECOND
    clock.advance(60 * SECOND)
    assert not (await around(store, wanted)).queue.paused


async def test_what_runs_in_its_queue_is_counted_and_the_longest_named(store: Store, clock: ManualClock) -> None:
    first = await running(store, "r1", queue="mail")
    clock.advance(SECOND)
    second = await running(store, "r2", queue="mail")
    await running(store, "r3", queue="other")
    wanted = await enqueue_one(store, queue="mail")
    found = await around(store, wanted)
    assert found.position.running == Count(2)
    assert [(each.id, each.runner) for each in found.runners] == [(first.id, "r1"), (second.id, "r2")]
    assert [each.since for each in found.runners] == [first.claimed_at, second.claimed_at]


async def test_a_running_job_tells_whose_runner_has_it(store: Store) -> None:
    job = await running(store)
    found = await around(store, job.id)
    assert (found.worker, found.job.worker) == ("w1", "r1")


async def test_workers_are_counted_by_what_they_can_do_for_it(store: Store) -> None:
    wanted = await enqueue_one(store, queue="mail", type="a")
    summaries: dict[str, dict[str, Any]] = {
        "stranger": {"types": ("b",), "queues": ("other",)},
        "elsewhere": {"types": ("a",), "queues": ("other",)},
        "ignorant": {"types": ("b",), "queues": ("mail",)},
        "leaving": {"types": ("a",), "queues": ("mail",), "draining": True},
        "able": {"types": ("a", "b"), "queues": ("other", "mail"), "slots": 7},
    }
    for name, fields in summaries.items():
        await store.workers.beat(worker_info(name, **fields))
    workers = (await around(store, wanted)).workers
    assert (workers.alive, workers.know, workers.serve, workers.able, workers.draining, workers.slots) == (
        5,
        3,
        3,
        1,
        1,
        7,
    )


async def test_the_usual_time_is_of_its_type_in_its_queue_and_the_pace_of_all_in_its_queue(
    store: Store, clock: ManualClock
) -> None:
    wanted = await enqueue_one(store)
    slot = interval_of(clock.wall())
    await store.stats.record(
        [
            Meter(queue="default", type="t", completed=2, run=histogram([10, 20])),
            Meter(queue="default", type="other", failed=3, run=histogram([900])),
            Meter(queue="elsewhere", type="t", completed=9, run=histogram([900])),
        ]
    )
    clock.advance(INTERVAL)
    await store.stats.record([Meter(queue="default", type="t", snoozed=1, run=histogram([30]))])
    found = await around(store, wanted)
    assert found.typical_duration == histogram([10, 20, 30])
    assert found.throughput.ended == {slot: 5, slot + INTERVAL: 1}


async def test_the_pace_is_of_the_last_minutes_and_the_usual_time_of_the_last_hour(
    store: Store, clock: ManualClock
) -> None:
    wanted = await enqueue_one(store)
    await store.stats.record([Meter(queue="default", type="t", completed=2, run=histogram([10]))])
    clock.advance(600 * SECOND)
    found = await around(store, wanted)
    assert (found.throughput.ended, found.typical_duration) == ({}, histogram([10]))
    clock.advance(3600 * SECOND)
    assert (await around(store, wanted)).typical_duration == histogram([])


async def test_looking_changes_nothing(store: Store) -> None:
    ids = [await put(store, status) for status in Status]
    before = await store.operator.get(ids)
    for id_ in ids:
        await around(store, id_)
    assert await store.operator.get(ids) == before


async def test_a_job_that_failed_tells_when_it_is_tried_again(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(worker_info())
    job = await running(store)
    await settle(store, failed(job, "no such user"))
    why = explain(await around(store, job.id))
    assert why.first.code == "retry_wait"
    assert why.first.until is not None
    assert to_micros(why.first.until) > clock.wall()


async def test_a_job_that_completed_says_so(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    assert explain(await around(store, job.id)).first.code == "completed"


async def test_an_answer_comes_while_another_holds_the_queue_up(store: Store) -> None:
    await open_lease(store)
    ids = await enqueue(store, 3)
    await claim_one(store)
    await store.queues.pause("default", None)
    codes = [explain(await around(store, id_)).first.code for id_ in ids]
    assert codes == ["claimed", "paused", "paused"]
