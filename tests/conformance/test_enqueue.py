"""enqueue: all or nothing, and safe to repeat."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    FINISHES,
    LEASE,
    claim_ids,
    claim_one,
    completed,
    enqueue_one,
    let_lapse,
    look,
    new_job,
    open_lease,
    put,
    running,
    settle,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import DAY, SECOND, to_datetime, to_micros
from windlass.core.status import LIVE, Status
from windlass.store.contract import Store


async def test_a_job_is_readable_as_it_was_enqueued(store: Store, clock: ManualClock) -> None:
    job = new_job(
        queue="mail",
        type="mail.welcome",
        payload='{"user": 7}',
        priority=5,
        tenant="acme",
        timeout=3 * SECOND,
        expires=DAY,
        tags=("a", "b"),
        meta='{"trace": "x"}',
        idempotency_key="k",
        concurrency_key="c",
    )
    assert await store.jobs.enqueue([job]) == [Enqueued(job.id)]
    found = await look(store, job.id)
    now = to_datetime(clock.wall())
    assert (found.queue, found.type, found.payload, found.priority) == ("mail", "mail.welcome", {"user": 7}, 5)
    assert (found.tenant, found.timeout, found.tags, found.meta) == ("acme", 3.0, ("a", "b"), {"trace": "x"})
    assert (found.idempotency_key, found.concurrency_key) == ("k", "c")
    assert found.status in (Status.PENDING, Status.BLOCKED), "one with a key may have to be admitted first"
    assert (found.attempt, found.max_attempts) == (0, 3)
    assert (found.created_at, found.updated_at, found.run_at) == (now, now, now)
    assert found.expires_at == now + timedelta(days=1)
    assert (found.worker, found.claimed_at, found.attempts) == (None, None, ())


async def test_an_enqueue_of_nothing_returns_nothing(store: Store) -> None:
    assert await store.jobs.enqueue([]) == []


@pytest.mark.parametrize("status", list(Status))
async def test_an_id_enqueued_again_changes_nothing_whatever_became_of_it(store: Store, status: Status) -> None:
    id_ = await put(store, status, payload="1")
    before = await look(store, id_)
    assert await store.jobs.enqueue([new_job(id=id_, payload="2")]) == [Enqueued(id_, existing=True)]
    assert await look(store, id_) == before


async def test_an_id_is_known_after_a_completion_that_is_not_kept(store: Store) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    job = await running(store)
    await settle(store, completed(job))
    assert await store.operator.get([job.id]) == [None]
    assert await store.jobs.enqueue([new_job(id=job.id)]) == [Enqueued(job.id, existing=True)]
    assert await claim_ids(store) == []


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_an_id_is_known_for_a_day_after_its_job_was_deleted(
    store: Store, clock: ManualClock, status: Status
) -> None:
    id_ = await put(store, status)
    await store.operator.delete([id_])
    clock.advance(DAY - SECOND)
    await store.operator.prune(100)
    assert await store.jobs.enqueue([new_job(id=id_)]) == [Enqueued(id_, existing=True)]
    clock.advance(2 * SECOND)
    await store.operator.prune(100)
    assert await store.jobs.enqueue([new_job(id=id_)]) == [Enqueued(id_)]


async def test_one_bad_job_in_a_batch_keeps_all_of_it_out(store: Store) -> None:
    good, bad = new_job(idempotency_key="k"), new_job(payload="\ud800")
    with pytest.raises(UnicodeEncodeError):
        await store.jobs.enqueue([good, bad])
    assert await store.operator.get([good.id, bad.id]) == [None, None]
    again = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([again]) == [Enqueued(again.id)], "the key is not left behind either"


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.COMPLETED])
async def test_an_id_is_known_in_every_queue(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    again, other = new_job(id=id_, queue="other"), new_job(queue="other")
    assert await store.jobs.enqueue([again, other]) == [Enqueued(id_, existing=True), Enqueued(other.id)]
    assert (await look(store, id_)).queue == "default"


async def test_an_id_twice_in_a_batch_for_two_queues_is_one_job(store: Store) -> None:
    job = new_job()
    again = msgspec.structs.replace(job, queue="other")
    assert await store.jobs.enqueue([job, again]) == [Enqueued(job.id), Enqueued(job.id, existing=True)]
    assert (await look(store, job.id)).queue == "default"


async def test_an_id_of_a_job_that_was_moved_is_known_where_it_was(store: Store) -> None:
    job = new_job()
    await store.jobs.enqueue([job])
    await store.operator.change([job.id], JobChange(queue="other"))
    assert await store.jobs.enqueue([job]) == [Enqueued(job.id, existing=True)]


async def test_an_id_twice_in_a_batch_is_one_job(store: Store) -> None:
    job = new_job()
    assert await store.jobs.enqueue([job, job]) == [Enqueued(job.id), Enqueued(job.id, existing=True)]
    await open_lease(store)
    assert await claim_ids(store) == [job.id]


async def test_the_second_key_of_an_id_that_comes_twice_in_a_batch_stays_free(store: Store) -> None:
    first, second = new_job(idempotency_key="k"), new_job(idempotency_key="l")
    again = msgspec.structs.replace(second, id=first.id)
    assert await store.jobs.enqueue([first, again]) == [Enqueued(first.id), Enqueued(first.id, existing=True)]
    assert await store.jobs.enqueue([second]) == [Enqueued(second.id)]


async def test_an_id_whose_first_key_is_held_is_stored_under_its_second(store: Store) -> None:
    (holder,) = await store.jobs.enqueue([new_job(idempotency_key="k")])
    one = new_job(idempotency_key="k")
    other = msgspec.structs.replace(one, idempotency_key="l")
    assert await store.jobs.enqueue([one, other]) == [Enqueued(holder.id, existing=True), Enqueued(one.id)]


async def test_a_key_twice_in_a_batch_is_one_job(store: Store) -> None:
    first, second = new_job(idempotency_key="k"), new_job(idempotency_key="k")
    answers = await store.jobs.enqueue([first, second])
    assert answers == [Enqueued(first.id), Enqueued(first.id, existing=True)]
    assert await store.operator.get([second.id]) == [None]


@pytest.mark.parametrize("status", sorted(LIVE))
async def test_a_key_is_held_while_its_job_lives(store: Store, status: Status) -> None:
    id_ = await put(store, status, idempotency_key="k")
    other = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([other]) == [Enqueued(id_, existing=True)]
    assert await store.operator.get([other.id]) == [None]


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_a_key_is_free_once_its_job_ended(store: Store, status: Status) -> None:
    await put(store, status, idempotency_key="k")
    other = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([other]) == [Enqueued(other.id)]


async def test_a_key_is_free_once_its_waiting_job_was_cancelled(store: Store) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    await store.operator.cancel([id_], "")
    other = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([other]) == [Enqueued(other.id)]


async def test_a_key_stays_held_while_its_job_goes_from_rescue_to_completion(
    store: Store, clock: ManualClock
) -> None:
    first = await running(store, idempotency_key="k")
    await let_lapse(store, clock, LEASE)
    await store.leases.rescue(10)
    other = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([other]) == [Enqueued(first.id, existing=True)]
    await open_lease(store, "r2")
    await settle(store, completed(await claim_one(store, "r2")))
    assert await store.jobs.enqueue([other]) == [Enqueued(other.id)]


async def test_a_key_belongs_to_its_queue(store: Store) -> None:
    here, there = new_job(idempotency_key="k"), new_job(idempotency_key="k", queue="other")
    assert await store.jobs.enqueue([here, there]) == [Enqueued(here.id), Enqueued(there.id)]


async def test_jobs_without_a_key_do_not_meet(store: Store) -> None:
    first, second = new_job(), new_job()
    assert await store.jobs.enqueue([first, second]) == [Enqueued(first.id), Enqueued(second.id)]


async def test_long_keys_that_differ_only_at_their_ends_differ(store: Store) -> None:
    first, second = new_job(idempotency_key="k" * 4000 + "1"), new_job(idempotency_key="k" * 4000 + "2")
    assert await store.jobs.enqueue([first, second]) == [Enqueued(first.id), Enqueued(second.id)]


async def test_a_delay_counts_from_the_clock_of_the_store(store: Store, clock: ManualClock) -> None:
    job = await look(store, await enqueue_one(store, delay=5 * SECOND))
    assert job.status is Status.SCHEDULED
    assert job.run_at == to_datetime(clock.wall() + 5 * SECOND)


async def test_run_at_wins_over_a_delay(store: Store, clock: ManualClock) -> None:
    moment = clock.wall() + 9 * SECOND
    job = await look(store, await enqueue_one(store, delay=5 * SECOND, run_at=moment))
    assert job.run_at == to_datetime(moment)


@pytest.mark.parametrize("ago", [0, 1, 365 * DAY])
async def test_a_run_at_that_has_come_is_pending_at_once(store: Store, clock: ManualClock, ago: int) -> None:
    assert await status_of(store, await enqueue_one(store, run_at=clock.wall() - ago)) is Status.PENDING


async def test_a_run_at_long_ago_does_not_overtake_a_waiting_job(store: Store, clock: ManualClock) -> None:
    waits = await enqueue_one(store)
    clock.advance(SECOND)
    late = await enqueue_one(store, run_at=clock.wall() - DAY)
    await open_lease(store)
    assert await claim_ids(store) == [waits, late]


async def test_the_budget_is_that_of_the_queue_unless_the_job_brings_one(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(max_attempts=7)})
    assert (await look(store, await enqueue_one(store))).max_attempts == 7
    assert (await look(store, await enqueue_one(store, max_attempts=2))).max_attempts == 2
    assert (await look(store, await enqueue_one(store, queue="other"))).max_attempts == 3


async def test_a_change_of_the_queue_is_for_jobs_that_come_later(store: Store) -> None:
    before = await enqueue_one(store)
    await store.queues.change("default", QueueSettings(max_attempts=9))
    assert (await look(store, before)).max_attempts == 3
    assert (await look(store, await enqueue_one(store))).max_attempts == 9


@pytest.mark.parametrize("fresh", ["", "this process"])
async def test_jobs_of_one_bulk_may_each_have_a_time_of_their_own(
    store: Store, clock: ManualClock, fresh: str
) -> None:
    now = clock.wall()
    given: list[dict[str, Any]] = [
        {},
        {"delay": 2 * SECOND},
        {"delay": SECOND},
        {"run_at": now + 3 * SECOND},
        {"run_at": now - SECOND},
        {"run_at": now + 4 * SECOND, "idempotency_key": "k"},
        {"delay": 5 * SECOND, "concurrency_key": "c"},
        {"run_at": now - 1, "concurrency_key": "c"},
        {"run_at": now - 1, "concurrency_key": "c"},
    ]
    jobs = [new_job(payload=f'{{"n":{n}}}', fresh=fresh, **fields) for n, fields in enumerate(given)]
    assert [each.existing for each in await store.jobs.enqueue(jobs)] == [False] * len(jobs)
    found = [await look(store, job.id) for job in jobs]
    due = [now, now + 2 * SECOND, now + SECOND, now + 3 * SECOND, now - SECOND, now + 4 * SECOND, now + 5 * SECOND]
    assert [to_micros(job.run_at) for job in found] == [*due, now - 1, now - 1]
    assert [job.payload for job in found] == [{"n": n} for n in range(len(jobs))]
    waits = [job.status is Status.SCHEDULED for job in found]
    assert waits == [False, True, True, True, False, True, True, False, False]
    assert found[8].status is Status.BLOCKED, "it waits for the key"
    assert found[5].idempotency_key == "k"
