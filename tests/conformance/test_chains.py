"""Chains: the next job may run when the one before it has completed, and gets its result; else it ends with it."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.chains import (
    after,
    chain,
    end_next,
    enqueue_jobs,
    fallen,
    follow_on,
    given,
    links,
    reasons,
    statuses,
    take_one,
)
from tests.support.clock import ManualClock
from tests.support.key_queues import drain, take
from tests.support.seed import (
    cancelled,
    completed,
    dead,
    enqueue_one,
    failed,
    let_lapse,
    look,
    new_job,
    put,
    running,
    settle,
    snoozed,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import new_id
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, parent_ended_reason
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import CRASH_LIMIT
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd, Settled

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def test_all_links_are_stored_at_once_and_only_the_first_may_run(store: Store) -> None:
    ids = await chain(store, 3)
    assert await statuses(store, ids) == [PENDING, BLOCKED, BLOCKED]
    assert await reasons(store, ids) == [None, WAITING_FOR_PARENT, WAITING_FOR_PARENT]
    second = await look(store, ids[1])
    assert (second.parent, second.parents) == (ids[0], (ids[0],))
    assert (await store.operator.counts()).queues["default"]["blocked"] == 2


async def test_a_completion_lets_the_next_link_go_on_with_its_result(store: Store, clock: ManualClock) -> None:
    ids = await chain(store, 3)
    clock.advance(5 * SECOND)
    first = await end_next(store, lambda job: completed(job, '{"a":[1,"zwölf"]}'))
    assert (first.id, given(first)) == (ids[0], None)
    assert await statuses(store, ids) == [COMPLETED, PENDING, BLOCKED]
    assert (await look(store, ids[1])).run_at == to_datetime(clock.wall()), "it is due from now on"
    second = await end_next(store, lambda job: completed(job, None))
    assert (second.id, given(second)) == (ids[1], '{"a":[1,"zwölf"]}')
    third = await end_next(store, completed)
    assert (third.id, given(third)) == (ids[2], "null")
    assert await statuses(store, ids) == [COMPLETED] * 3


async def test_each_of_many_chains_that_complete_together_gets_its_own(store: Store) -> None:
    chains = [links(2) for _ in range(20)]
    await enqueue_jobs(store, [job for each in chains for job in each])
    jobs = await take(store)
    assert len(jobs) == 20
    assert set(await store.jobs.settle([completed(job, f'"{job.id}"') for job in jobs])) == {Settled.SETTLED}
    assert {(job.id, given(job)) for job in await take(store, "r2")} == {
        (second.id, f'"{first.id}"') for first, second in chains
    }


async def test_a_repeated_settlement_hands_nothing_on_twice(store: Store) -> None:
    await chain(store, 2)
    first = await take_one(store)
    assert await settle(store, completed(first)) is Settled.SETTLED
    assert await settle(store, completed(first)) is Settled.ALREADY
    (second,) = await take(store, "r2")
    assert given(second) == "1"
    assert await settle(store, completed(first)) is Settled.ALREADY


async def test_a_repeated_enqueue_returns_the_existing_links(store: Store) -> None:
    jobs = links(3)
    await enqueue_jobs(store, jobs)
    assert all(each.existing for each in await store.jobs.enqueue(jobs))
    await end_next(store, completed)
    assert all(each.existing for each in await store.jobs.enqueue(jobs))
    assert await statuses(store, [job.id for job in jobs]) == [COMPLETED, PENDING, BLOCKED]


@pytest.mark.parametrize("ending", [failed, snoozed])
async def test_a_link_that_runs_again_keeps_the_rest_waiting(
    store: Store, clock: ManualClock, ending: Callable[[Claimed], object]
) -> None:
    ids = await chain(store, 2)
    await end_next(store, ending)
    assert await status_of(store, ids[1]) is BLOCKED
    clock.advance(DAY)
    await store.jobs.admit(10)
    await end_next(store, completed)
    assert await statuses(store, ids) == [COMPLETED, PENDING]


async def test_a_link_that_was_rescued_keeps_the_rest_waiting(store: Store, clock: ManualClock) -> None:
    ids = await chain(store, 2)
    late = await take_one(store)
    await let_lapse(store, clock)
    await store.leases.rescue(10)
    assert await statuses(store, ids) == [PENDING, BLOCKED]
    assert await settle(store, completed(late)) is Settled.STALE
    assert await statuses(store, ids) == [PENDING, BLOCKED], "a stale outcome hands nothing on"


async def _dies(store: Store) -> None:
    await end_next(store, dead)


async def _cancels_itself(store: Store) -> None:
    await end_next(store, cancelled)


async def _crashes(store: Store) -> None:
    for number in range(CRASH_LIMIT):
        (job,) = await take(store, f"crasher {number}")
        await store.leases.end(
            RunnerEnd(runner=f"crasher {number}", started=frozenset({(job.id, job.attempt)}), crashed=True)
        )


async def _is_stopped(store: Store) -> None:
    job = await take_one(store)
    await store.operator.cancel([job.id], "no more")
    await settle(store, cancelled(job))


ENDS: dict[str, tuple[Callable[[Store], Awaitable[None]], Status]] = {
    "dead": (_dies, Status.DEAD),
    "cancelled by its handler": (_cancels_itself, CANCELLED),
    "crashed": (_crashes, Status.DEAD),
    "stopped while it ran": (_is_stopped, CANCELLED),
}


@pytest.mark.parametrize("how", ENDS)
async def test_a_link_that_ends_badly_takes_the_rest_with_it_and_each_says_why(store: Store, how: str) -> None:
    end, status = ENDS[how]
    ids = await chain(store, 4, max_attempts=10)
    await end(store)
    assert await statuses(store, ids) == [status, CANCELLED, CANCELLED, CANCELLED]
    assert await reasons(store, ids[1:]) == fallen(ids, status)
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["blocked"], counts["cancelled"] + counts["dead"]) == (0, 4)


async def test_a_waiting_link_that_is_cancelled_takes_the_rest_with_it(store: Store) -> None:
    ids = await chain(store, 4)
    await store.operator.cancel([ids[1]], "not needed")
    assert await statuses(store, ids) == [PENDING, CANCELLED, CANCELLED, CANCELLED]
    assert await reasons(store, ids[1:]) == ["not needed", *fallen(ids[1:], CANCELLED)]
    await end_next(store, completed)
    assert await statuses(store, ids) == [COMPLETED, CANCELLED, CANCELLED, CANCELLED]


async def test_a_link_that_expires_takes_the_rest_with_it(store: Store, clock: ManualClock) -> None:
    first, second, third = new_job(), new_job(expires=DAY), new_job()
    ids = await enqueue_jobs(store, follow_on([first, second, third]))
    clock.advance(DAY)
    assert len(await store.jobs.expire(10)) == 1
    assert await statuses(store, ids) == [PENDING, CANCELLED, CANCELLED]
    assert await reasons(store, ids[2:]) == [parent_ended_reason(ids[1], CANCELLED)]


async def test_a_link_that_is_replaced_takes_the_rest_with_it(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(idempotency_key="k", delay=DAY), new_job()]))
    new = await enqueue_one(store, idempotency_key="k", on_conflict=OnConflict.REPLACE)
    assert await statuses(store, [*ids, new]) == [CANCELLED, CANCELLED, PENDING]


async def test_a_child_of_a_completed_job_is_due_at_once_with_its_result(store: Store, clock: ManualClock) -> None:
    parent = await running(store)
    await settle(store, completed(parent, "[7]"))
    clock.advance(SECOND)
    (child,) = await enqueue_jobs(store, [after(new_job(), parent.id)])
    assert await status_of(store, child) is PENDING
    assert given(await take_one(store)) == "[7]"


@pytest.mark.parametrize("status", [Status.DEAD, CANCELLED])
async def test_a_child_of_a_job_that_ended_badly_is_stored_as_cancelled(store: Store, status: Status) -> None:
    parent = await put(store, status)
    first, second = follow_on([after(new_job(), parent), new_job()])
    ids = await enqueue_jobs(store, [first, second])
    assert await statuses(store, ids) == [CANCELLED, CANCELLED]
    assert await reasons(store, ids) == [parent_ended_reason(parent, status), parent_ended_reason(ids[0], CANCELLED)]


@pytest.mark.parametrize("status", [Status.RUNNING, Status.SCHEDULED, Status.FAILED, BLOCKED, PENDING])
async def test_a_child_of_a_job_that_has_not_ended_waits_for_it(store: Store, status: Status) -> None:
    parent = await put(store, status)
    (child,) = await enqueue_jobs(store, [after(new_job(), parent)])
    assert await status_of(store, child) is BLOCKED


async def test_an_unknown_parent_is_refused_and_nothing_is_stored(store: Store) -> None:
    unknown, job = new_id(), new_job()
    with pytest.raises(InvalidOption, match=unknown) as refused:
        await enqueue_jobs(store, [job, after(new_job(), unknown)])
    assert refused.value.field == "parents"
    assert await store.operator.get([job.id]) == [None]


async def test_a_link_before_its_parent_is_refused(store: Store) -> None:
    first, second, third = links(3)
    with pytest.raises(InvalidOption, match=second.id):
        await enqueue_jobs(store, [first, third, second])


async def test_a_parent_in_a_queue_that_keeps_nothing_is_refused_as_a_source(store: Store) -> None:
    await store.queues.change("brief", QueueSettings(retention={COMPLETED: 0}))
    jobs = follow_on([new_job(queue="brief"), new_job()])
    with pytest.raises(InvalidOption, match="brief") as refused:
        await enqueue_jobs(store, jobs)
    assert refused.value.field == "result_params.given"
    assert await store.operator.get([job.id for job in jobs]) == [None, None]


async def test_a_queue_that_keeps_nothing_any_more_still_hands_on(store: Store) -> None:
    jobs = follow_on([new_job(queue="brief"), new_job()])
    ids = await enqueue_jobs(store, jobs)
    await store.queues.change("brief", QueueSettings(retention={COMPLETED: 0}))
    await end_next(store, completed, queues=("brief",))
    assert await store.operator.get(ids[:1]) == [None]
    assert given(await take_one(store)) == "1"


async def test_the_last_link_may_be_in_a_queue_that_keeps_nothing(store: Store) -> None:
    await store.queues.change("brief", QueueSettings(retention={COMPLETED: 0}))
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(queue="brief")]))
    await end_next(store, completed)
    await end_next(store, completed, queues=("brief",))
    assert await store.operator.get(ids[1:]) == [None]


async def test_one_parent_may_have_many_children(store: Store) -> None:
    parent = new_job()
    children = [after(new_job(), parent.id) for _ in range(1000)]
    await enqueue_jobs(store, [parent, *children])
    await end_next(store, completed)
    assert (await store.operator.counts()).queues["default"]["pending"] == 1000


async def test_a_chain_of_a_thousand_links_runs_in_its_order(store: Store) -> None:
    ids = await chain(store, 1000)
    assert await drain(store) == ids


async def test_a_chain_of_a_thousand_links_is_cancelled_and_retried(store: Store) -> None:
    ids = await chain(store, 1000)
    await end_next(store, dead)
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["blocked"], counts["cancelled"]) == (0, 999)
    await store.operator.retry([ids[0]])
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["blocked"], counts["cancelled"]) == (999, 0)
    assert await drain(store) == ids
