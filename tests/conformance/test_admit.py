"""admit: jobs whose time has come become pending."""

from tests.support.clock import ManualClock
from tests.support.seed import (
    WAIT,
    claim_ids,
    enqueue,
    enqueue_one,
    failed,
    look,
    open_lease,
    put,
    running,
    settle,
    snoozed,
    status_of,
)
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Admitted


async def test_an_empty_store_has_nothing_to_admit(store: Store) -> None:
    assert await store.jobs.admit(10) == Admitted(0, None)


async def test_a_job_is_admitted_when_its_time_comes_and_not_before(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, delay=5 * SECOND)
    clock.advance(5 * SECOND - 1)
    assert await store.jobs.admit(10) == Admitted(0, 1)
    assert await status_of(store, id_) is Status.SCHEDULED
    clock.advance(1)
    assert await store.jobs.admit(10) == Admitted(1, None)
    assert await status_of(store, id_) is Status.PENDING


async def test_a_failed_job_is_admitted_after_its_wait(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await settle(store, failed(job))
    clock.advance(WAIT - 1)
    assert await store.jobs.admit(10) == Admitted(0, 1)
    clock.advance(1)
    assert (await store.jobs.admit(10)).jobs == 1
    assert await status_of(store, job.id) is Status.PENDING


async def test_a_snoozed_job_is_admitted_after_its_sleep(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await settle(store, snoozed(job, 5))
    clock.advance(5 * SECOND)
    assert (await store.jobs.admit(10)).jobs == 1
    assert await status_of(store, job.id) is Status.PENDING


async def test_the_earliest_are_admitted_first(store: Store, clock: ManualClock) -> None:
    late = await enqueue_one(store, delay=3 * SECOND)
    early = await enqueue_one(store, delay=1 * SECOND)
    clock.advance(5 * SECOND)
    assert await store.jobs.admit(1) == Admitted(1, 0)
    assert [await status_of(store, id_) for id_ in (early, late)] == [Status.PENDING, Status.SCHEDULED]


async def test_no_more_than_the_limit_is_admitted(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 5, delay=SECOND)
    clock.advance(SECOND)
    assert [(await store.jobs.admit(2)).jobs for _ in range(4)] == [2, 2, 1, 0]


async def test_the_next_due_time_is_returned(store: Store) -> None:
    await enqueue_one(store, delay=9 * SECOND)
    await enqueue_one(store, delay=7 * SECOND)
    assert await store.jobs.admit(10) == Admitted(0, 7 * SECOND)


async def test_an_admitted_job_falls_in_behind_those_that_wait_already(store: Store, clock: ManualClock) -> None:
    scheduled = await enqueue_one(store, delay=SECOND)
    clock.advance(5 * SECOND)
    waits = await enqueue_one(store)
    clock.advance(1)
    await store.jobs.admit(10)
    await open_lease(store)
    assert await claim_ids(store) == [waits, scheduled]


async def test_admission_keeps_the_run_at_that_was_asked_for(store: Store, clock: ManualClock) -> None:
    due = clock.wall() + SECOND
    id_ = await enqueue_one(store, run_at=due)
    clock.advance(DAY)
    await store.jobs.admit(10)
    assert (await look(store, id_)).run_at == to_datetime(due)


async def test_a_wall_clock_set_back_delays_and_loses_nothing(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, delay=SECOND)
    clock.jump_wall(-DAY)
    assert await store.jobs.admit(10) == Admitted(0, DAY + SECOND)
    clock.jump_wall(DAY + SECOND)
    assert (await store.jobs.admit(10)).jobs == 1
    assert await status_of(store, id_) is Status.PENDING


async def test_only_scheduled_and_failed_jobs_are_admitted(store: Store, clock: ManualClock) -> None:
    others = [status for status in Status if status not in (Status.SCHEDULED, Status.FAILED)]
    ids = [await put(store, status) for status in others]
    clock.advance(10)
    assert (await store.jobs.admit(100)).jobs == 0
    assert [await status_of(store, id_) for id_ in ids] == others
