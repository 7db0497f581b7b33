"""Chains that users step into: retried, deleted and changed links; and what links say of themselves."""

from collections.abc import Callable

import pytest

from tests.support.chains import after, chain, end_next, enqueue_jobs, follow_on, given, reasons, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.key_queues import drain, may_run, take
from tests.support.seed import completed, dead, enqueue_one, new_job, settle, status_of
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, parent_ended_reason
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Settled, Transition

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def test_a_retried_dead_link_revives_the_rest(store: Store) -> None:
    ids = await chain(store, 4)
    await end_next(store, completed)
    await end_next(store, dead)
    await store.operator.retry([ids[1]])
    assert await statuses(store, ids) == [COMPLETED, PENDING, BLOCKED, BLOCKED]
    assert await reasons(store, ids[2:]) == [WAITING_FOR_PARENT, WAITING_FOR_PARENT]
    second = await take_one(store)
    assert (second.id, second.attempt, given(second)) == (ids[1], 2, "1"), "with the result that it had"
    await settle(store, completed(second, "2"))
    assert given(await take_one(store)) == "2"


async def test_a_retried_cancelled_link_revives_the_rest(store: Store) -> None:
    ids = await chain(store, 3)
    await store.operator.cancel([ids[0]], "no")
    await store.operator.retry([ids[0]])
    assert await statuses(store, ids) == [PENDING, BLOCKED, BLOCKED]
    assert await drain(store) == ids


async def test_a_waiting_link_that_was_cancelled_waits_again_when_it_is_retried(store: Store) -> None:
    ids = await chain(store, 3)
    await store.operator.cancel([ids[1]], "no")
    assert await store.operator.retry([ids[1]]) == [Transition(ids[1], BLOCKED, done=True)]
    assert await statuses(store, ids) == [PENDING, BLOCKED, BLOCKED]
    assert await drain(store) == ids


async def test_a_link_that_was_cancelled_finds_the_result_that_came_meanwhile(store: Store) -> None:
    ids = await chain(store, 3)
    await store.operator.cancel([ids[1]], "no")
    await end_next(store, lambda job: completed(job, "42"))
    assert await store.operator.retry([ids[1]]) == [Transition(ids[1], PENDING, done=True)]
    assert given(await take_one(store)) == "42"
    assert await statuses(store, ids) == [COMPLETED, Status.RUNNING, BLOCKED]


async def test_a_link_whose_parent_is_dead_cannot_be_retried_before_it(store: Store) -> None:
    ids = await chain(store, 3)
    await end_next(store, dead)
    assert await store.operator.retry([ids[2]]) == [Transition(ids[2], CANCELLED, done=False, parent=ids[1])]
    assert await store.operator.retry([ids[1]]) == [Transition(ids[1], CANCELLED, done=False, parent=ids[0])]
    await store.operator.delete([ids[0]])
    assert await store.operator.retry([ids[1]]) == [Transition(ids[1], CANCELLED, done=False, parent=ids[0])]
    assert await statuses(store, ids[1:]) == [CANCELLED, CANCELLED]


async def test_a_link_that_an_operator_cancelled_stays_so_when_its_parent_is_retried(store: Store) -> None:
    ids = await chain(store, 4)
    await store.operator.cancel([ids[2]], "not needed")
    await end_next(store, dead)
    await store.operator.retry([ids[0]])
    assert await statuses(store, ids) == [PENDING, BLOCKED, CANCELLED, CANCELLED]
    assert await drain(store) == ids[:2]


async def test_a_completed_link_that_is_retried_hands_nothing_on_again(store: Store) -> None:
    ids = await chain(store, 2)
    assert await drain(store) == ids
    await store.operator.retry([ids[0]])
    assert await drain(store) == ids[:1]
    await store.operator.retry([ids[1]])
    assert given(await take_one(store)) == "1", "what it got is kept with it"


async def test_a_link_goes_on_though_its_parent_was_deleted_meanwhile(store: Store) -> None:
    ids = await chain(store, 2)
    await end_next(store, completed)
    await store.operator.delete([ids[0]])
    assert given(await take_one(store)) == "1"


async def test_deleted_links_leave_nothing_that_a_retry_would_bring_back(store: Store) -> None:
    ids = await chain(store, 3)
    await end_next(store, dead)
    await store.operator.delete([ids[1]])
    await store.operator.retry([ids[0]])
    assert await statuses(store, [ids[0], ids[2]]) == [PENDING, CANCELLED]


async def test_links_keep_their_priorities_and_queues(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(queue="other", priority=7)]))
    await enqueue_one(store, queue="other", priority=1)
    await end_next(store, completed)
    (best,) = await take(store, queues=("other",), limit=1)
    assert (best.id, best.priority) == (ids[1], 7)


async def test_a_link_with_a_concurrency_key_waits_for_its_key_only_when_it_is_due(
    store: Store, clock: ManualClock
) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(concurrency_key="k")]))
    holder = await enqueue_one(store, concurrency_key="k", type="other")
    assert await may_run(store, [holder]) == [holder], "a job that waits for a parent takes no key slot"
    await end_next(store, completed)
    assert await reasons(store, ids[1:]) == [WAITING_FOR_KEY]
    (job,) = await take(store, types=("other",))
    await settle(store, completed(job))
    clock.advance(SECOND)
    await store.jobs.admit(10)
    assert (await take_one(store)).id == ids[1]


async def test_a_link_whose_concurrency_key_is_free_is_pending_at_once(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(concurrency_key="k"), new_job(concurrency_key="k")]))
    await end_next(store, completed)
    assert (await take_one(store)).id == ids[1]


async def test_links_of_a_paused_queue_wait_there(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(queue="held")]))
    await store.queues.pause("held", None)
    await end_next(store, completed)
    assert await status_of(store, ids[1]) is PENDING
    assert await take(store, queues=("held",)) == []


async def test_links_go_on_though_their_queue_was_closed_meanwhile(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(queue="shut")]))
    await store.queues.close("shut")
    await end_next(store, completed)
    assert (await take_one(store, queues=("shut",))).id == ids[1]


async def test_a_child_that_takes_nothing_only_waits(store: Store) -> None:
    parent = new_job()
    child = new_job(parents=(parent.id,))
    await enqueue_jobs(store, [parent, child])
    await end_next(store, lambda job: completed(job, '"much"'))
    found = await take_one(store)
    assert (found.id, found.result_params, found.parent_results) == (child.id, None, None)


async def test_a_child_of_several_waits_for_all_of_them_and_gets_what_it_takes(store: Store) -> None:
    one, two, three = new_job(), new_job(), new_job()
    child = new_job(parents=(one.id, two.id, three.id), result_params=(("x", one.id), ("y", three.id)))
    await enqueue_jobs(store, [one, two, three, child])
    jobs = {job.id: job for job in await take(store)}
    await store.jobs.settle([completed(jobs[one.id], "1"), completed(jobs[two.id], "2")])
    assert await status_of(store, child.id) is BLOCKED
    await settle(store, completed(jobs[three.id], "3"))
    found = await take_one(store, runner="r2")
    assert found.parent_results is not None
    assert found.parent_results.count('"1"') == found.parent_results.count('"3"') == 1
    assert '"2"' not in found.parent_results, "a result that no dependent takes is not passed on"


async def test_a_child_of_several_ends_with_the_first_that_ends_badly(store: Store) -> None:
    one, two = new_job(), new_job()
    child = after(new_job(), one.id)
    await enqueue_jobs(store, [one, two, child])
    (waits,) = await enqueue_jobs(store, [new_job(parents=(one.id, two.id))])
    jobs = {job.id: job for job in await take(store)}
    await store.jobs.settle([completed(jobs[one.id]), dead(jobs[two.id])])
    assert await statuses(store, [child.id, waits]) == [PENDING, CANCELLED]


async def test_a_child_of_two_that_ended_badly_waits_again_when_both_are_retried(store: Store) -> None:
    one, two = new_job(), new_job()
    child, behind = follow_on([new_job(parents=(one.id, two.id)), new_job()])
    ids = await enqueue_jobs(store, [one, two, child, behind])
    await store.jobs.settle([dead(job) for job in await take(store)])
    await store.operator.retry(ids[:1])
    assert await statuses(store, ids[2:]) == [CANCELLED, CANCELLED], "the other one would be waited for in vain"
    assert (await reasons(store, ids[2:3])) == [parent_ended_reason(two.id, Status.DEAD)]
    await store.operator.retry(ids[1:2])
    assert await statuses(store, ids) == [PENDING, PENDING, BLOCKED, BLOCKED]
    assert (await drain(store))[2:] == ids[2:]


@pytest.mark.parametrize("early", [True, False])
async def test_a_grandchild_that_is_a_child_too_waits_again_with_its_parents(store: Store, early: bool) -> None:
    """Whichever of them comes first by its id."""
    first, *others = (new_job() for _ in range(3))
    low, high = sorted(job.id for job in others)
    between = new_job(id=high if early else low, parents=(first.id,))
    last = new_job(id=low if early else high, parents=(first.id, between.id))
    ids = await enqueue_jobs(store, [first, between, last])
    await end_next(store, dead)
    await store.operator.retry(ids[:1])
    assert await statuses(store, ids) == [PENDING, BLOCKED, BLOCKED]
    assert await drain(store) == ids


@pytest.mark.parametrize("ending", [completed, dead])
async def test_a_parent_that_is_retried_leaves_a_child_alone_that_has_gone_on(
    store: Store, ending: Callable[[Claimed], Settlement]
) -> None:
    ids = await chain(store, 2)
    await end_next(store, completed)
    child = await take_one(store, runner="r2")
    await store.operator.retry(ids[:1])
    await end_next(store, ending)
    assert await status_of(store, ids[1]) is Status.RUNNING
    assert await settle(store, completed(child)) is Settled.SETTLED
