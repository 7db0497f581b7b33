"""When links are due: after their delays and at their moments, whatever clocks and users do meanwhile."""

from tests.support.chains import chain, end_next, enqueue_jobs, follow_on, reasons, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.key_queues import drain
from tests.support.seed import completed, look, new_job, status_of
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Transition

BLOCKED, PENDING, COMPLETED = Status.BLOCKED, Status.PENDING, Status.COMPLETED


async def test_the_delay_of_a_link_counts_from_the_end_of_the_one_before(store: Store, clock: ManualClock) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(delay=60 * SECOND), new_job()]))
    clock.advance(DAY)
    await end_next(store, completed)
    found = await look(store, ids[1])
    assert (found.status, found.run_at) == (Status.SCHEDULED, to_datetime(clock.wall() + 60 * SECOND))
    assert await statuses(store, ids) == [COMPLETED, Status.SCHEDULED, BLOCKED]
    clock.advance(60 * SECOND)
    await store.jobs.admit(10)
    assert await drain(store) == ids[1:]


async def test_a_link_with_a_moment_waits_for_that_too(store: Store, clock: ManualClock) -> None:
    moment = clock.wall() + DAY
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(run_at=moment)]))
    await end_next(store, completed)
    assert (await look(store, ids[1])).run_at == to_datetime(moment)
    assert await status_of(store, ids[1]) is Status.SCHEDULED
    late = await enqueue_jobs(store, follow_on([new_job(), new_job(run_at=moment)]))
    clock.advance(2 * DAY)
    await end_next(store, completed)
    assert await status_of(store, late[1]) is PENDING


async def test_a_clock_that_is_set_back_after_the_enqueue_delays_no_link(store: Store, clock: ManualClock) -> None:
    ids = await chain(store, 2)
    delayed = await enqueue_jobs(store, follow_on([new_job(queue="other"), new_job(delay=60 * SECOND)]))
    clock.jump_wall(-DAY)
    await end_next(store, completed, queues=("other",))
    assert (await look(store, delayed[1])).run_at == to_datetime(clock.wall() + 60 * SECOND)
    await end_next(store, completed)
    assert (await take_one(store)).id == ids[1]


async def test_a_waiting_link_may_be_changed_but_not_run_before_its_turn(store: Store, clock: ManualClock) -> None:
    ids = await chain(store, 2)
    assert await store.operator.run_now([ids[1]]) == [Transition(ids[1], BLOCKED, done=False)]
    change = JobChange(priority=5, queue="other", run_at=clock.wall() + DAY)
    assert await store.operator.change([ids[1]], change) == [Transition(ids[1], BLOCKED, done=True)]
    await end_next(store, completed)
    found = await look(store, ids[1])
    assert (found.status, found.priority, found.queue) == (Status.SCHEDULED, 5, "other")


async def test_a_moment_given_to_a_waiting_link_holds_instead_of_its_delay(store: Store, clock: ManualClock) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(delay=DAY)]))
    moment = clock.wall() + 60 * SECOND
    await store.operator.change([ids[1]], JobChange(priority=1))
    await store.operator.change([ids[1]], JobChange(run_at=moment))
    await end_next(store, completed)
    assert (await look(store, ids[1])).run_at == to_datetime(moment)


async def test_a_waiting_link_with_a_key_joins_no_key_queue_however_it_is_changed(
    store: Store, clock: ManualClock
) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(concurrency_key="k"), new_job()]))
    for change in (JobChange(delay=0), JobChange(queue="other"), JobChange(run_at=0, queue="default", priority=0)):
        await store.operator.change([ids[1]], change)
        clock.advance(SECOND)
        await store.jobs.admit(10)
        assert await reasons(store, ids[1:]) == [WAITING_FOR_PARENT, WAITING_FOR_PARENT]
    assert await drain(store) == ids
