"""Jobs that wait for the end of their parents, however that is: `when_ended`."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.support.chains import after, end_next, enqueue_jobs, fallen, links, reasons, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.key_queues import take
from tests.support.seed import cancelled, completed, dead, enqueue_one, new_job, settle, status_of
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.outcome import CRASH_LIMIT
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.contract import Store
from windlass.store.records import JobFilter, RunnerEnd

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


def after_end(*parents: JobId, **fields: Any) -> NewJob:
    """A job that waits for the ends of these."""
    return msgspec.structs.replace(new_job(**fields), parent=parents[0], parents=parents, when_ended=True)


async def _dies(store: Store, clock: ManualClock) -> None:
    await end_next(store, dead)


async def _completes(store: Store, clock: ManualClock) -> None:
    await end_next(store, completed)


async def _cancels_itself(store: Store, clock: ManualClock) -> None:
    await end_next(store, cancelled)


async def _expires(store: Store, clock: ManualClock) -> None:
    clock.advance(20 * SECOND)
    await store.jobs.expire(100)


async def _is_cancelled(store: Store, clock: ManualClock) -> None:
    (id_,) = await store.operator.select(JobFilter(status=(PENDING,)), 10, None)
    await store.operator.cancel([id_], "by hand")


ENDS = [_completes, _dies, _cancels_itself, _is_cancelled, _expires]
Ends = Callable[[Store, ManualClock], Awaitable[None]]


@pytest.mark.parametrize("ends", ENDS, ids=lambda each: each.__name__)
async def test_it_may_run_however_its_parent_ends(store: Store, clock: ManualClock, ends: Ends) -> None:
    parent = new_job(expires=10 * SECOND)
    child = after_end(parent.id)
    await enqueue_jobs(store, [parent, child])
    assert await status_of(store, child.id) is BLOCKED
    await ends(store, clock)
    assert await status_of(store, child.id) is PENDING
    assert (await end_next(store, completed)).id == child.id


async def test_a_dead_parent_cancels_one_child_and_releases_the_other(store: Store) -> None:
    parent = new_job()
    needs, either = after(new_job(), parent.id), after_end(parent.id)
    await enqueue_jobs(store, [parent, needs, either])
    await end_next(store, dead)
    assert await statuses(store, [needs.id, either.id]) == [CANCELLED, PENDING]
    assert await reasons(store, [needs.id]) == fallen([parent.id, needs.id], Status.DEAD)


async def test_a_retry_of_the_parent_restores_one_child_and_leaves_the_other_alone(store: Store) -> None:
    parent = new_job()
    needs, either = after(new_job(), parent.id), after_end(parent.id)
    await enqueue_jobs(store, [parent, needs, either])
    await end_next(store, dead)
    await end_next(store, completed)
    (moved,) = await store.operator.retry([parent.id])
    assert moved is not None
    assert moved.done
    assert await statuses(store, [needs.id, either.id]) == [BLOCKED, COMPLETED]
    await end_next(store, completed)
    assert await statuses(store, [needs.id, either.id]) == [PENDING, COMPLETED]


async def test_it_is_released_by_the_end_of_a_job_that_falls_with_another(store: Store) -> None:
    first, second, third = links(3)
    either = after_end(third.id)
    below = after(new_job(), either.id)
    await enqueue_jobs(store, [first, second, third, either, below])
    await end_next(store, dead)
    ids = [second.id, third.id, either.id, below.id]
    assert await statuses(store, ids) == [CANCELLED, CANCELLED, PENDING, BLOCKED]
    assert (await end_next(store, completed)).id == either.id
    assert await status_of(store, below.id) is PENDING


async def test_it_waits_for_the_ends_of_all_its_parents(store: Store) -> None:
    parents = [new_job(), new_job()]
    child = after_end(*[job.id for job in parents])
    await enqueue_jobs(store, [*parents, child])
    first, second = await take(store)
    await settle(store, dead(first))
    assert await status_of(store, child.id) is BLOCKED
    await settle(store, completed(second))
    assert await status_of(store, child.id) is PENDING


async def test_a_parent_that_dies_again_counts_once(store: Store) -> None:
    parents = [new_job(), new_job(priority=-1)]
    child = after_end(*[job.id for job in parents])
    await enqueue_jobs(store, [*parents, child])
    job = (await take(store, limit=1))[0]
    await settle(store, dead(job))
    await store.operator.retry([job.id])
    again = next(each for each in await take(store, claim=2) if each.id == job.id)
    await settle(store, dead(again))
    assert await status_of(store, child.id) is BLOCKED


async def test_it_may_be_retried_after_its_parent_has_died_meanwhile(store: Store) -> None:
    parent = new_job()
    child = after_end(parent.id)
    await enqueue_jobs(store, [parent, child])
    await store.operator.cancel([child.id], "by hand")
    await end_next(store, dead)
    assert await status_of(store, child.id) is CANCELLED
    (moved,) = await store.operator.retry([child.id])
    assert moved is not None
    assert moved.done
    assert (await take_one(store, claim=2)).id == child.id


async def test_it_may_run_at_once_if_its_parent_is_dead_when_it_comes(store: Store) -> None:
    parent = await enqueue_one(store)
    await end_next(store, dead)
    child = after_end(parent)
    await enqueue_jobs(store, [child])
    assert await status_of(store, child.id) is PENDING


async def test_its_parents_may_be_in_other_queues(store: Store) -> None:
    parents = [new_job(queue="q1"), new_job(queue="q2")]
    either = after_end(*[job.id for job in parents], queue="q3")
    needs = after(new_job(queue="q3"), parents[0].id)
    await enqueue_jobs(store, [*parents, either, needs])
    for job in await take(store, queues=("q1", "q2")):
        await settle(store, dead(job))
    assert await statuses(store, [either.id, needs.id]) == [PENDING, CANCELLED]


async def test_a_parent_whose_runner_dies_too_often_releases_it(store: Store) -> None:
    parent = new_job(max_attempts=1)
    child = after_end(parent.id)
    await enqueue_jobs(store, [parent, child])
    for number in range(CRASH_LIMIT):
        job = await take_one(store, runner=f"crasher {number}")
        end = RunnerEnd(runner=f"crasher {number}", started=frozenset({(job.id, job.attempt)}), crashed=True)
        await store.leases.end(end)
    assert await statuses(store, [parent.id, child.id]) == [Status.DEAD, PENDING]


async def test_many_children_of_one_cancelled_parent_are_released(store: Store) -> None:
    parent = new_job()
    children = [after_end(parent.id) for _ in range(300)]
    await enqueue_jobs(store, [parent, *children])
    await store.operator.cancel([parent.id], "by hand")
    found = {each.status for each in await store.operator.get([job.id for job in children]) if each is not None}
    assert found == {PENDING}


async def test_a_result_of_a_parent_that_may_be_dead_is_refused(store: Store) -> None:
    parent = new_job()
    child = msgspec.structs.replace(after(new_job(), parent.id), when_ended=True)
    with pytest.raises(InvalidOption, match="may end without a result"):
        await enqueue_jobs(store, [parent, child])
    assert await store.operator.get([parent.id]) == [None]
