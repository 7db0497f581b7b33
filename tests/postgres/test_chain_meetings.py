"""Parents end, children come, and both are cancelled or retried, at the same moment: in either order they meet.

Another session holds the row at which they meet, so that they come to it in a known order and go on one by one.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.chains import after, enqueue_jobs, given, links, reasons, statuses
from tests.support.key_queues import take
from tests.support.seed import Ending, completed, dead, enqueue_one, new_job, put, running, settle, status_of
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, parent_ended_reason
from windlass.core.status import Status
from windlass.store.contract import Store

BLOCKED, PENDING, CANCELLED, DEAD = Status.BLOCKED, Status.PENDING, Status.CANCELLED, Status.DEAD
LIVE = "SELECT FROM windlass.jobs WHERE id = %s FOR UPDATE"
OVER = "SELECT FROM windlass.history WHERE id = %s FOR UPDATE"

either_order = pytest.mark.parametrize("in_turn", [1, -1], ids=["as named", "the other way round"])


async def meet(other: Other, at: tuple[str, JobId], *works: Coroutine[Any, Any, Any]) -> None:
    """All of these come to one row, in this order, and then go on."""
    await other.does(*at)
    tasks = []
    for number, work in enumerate(works, 1):
        tasks.append(asyncio.create_task(work))
        async with asyncio.timeout(30):
            await other.is_waited_for(by=number)
    await other.commits()
    await asyncio.gather(*tasks)


async def completes(store: Store, parent: JobId) -> None:
    (job,) = await take(store)
    assert job.id == parent
    await settle(store, completed(job))


@either_order
@pytest.mark.parametrize("how", [completed, dead])
async def test_a_child_is_enqueued_while_its_parent_settles(
    store: Store, other: Other, how: Ending, in_turn: int
) -> None:
    parent = await running(store)
    child = after(new_job(), parent.id)
    both = [store.jobs.settle([how(parent)]), enqueue_jobs(store, [child])]
    await meet(other, (LIVE, parent.id), *both[::in_turn])
    expected = None if how is completed else parent_ended_reason(parent.id, DEAD)
    assert await reasons(store, [child.id]) == [expected]
    assert await status_of(store, child.id) is (PENDING if how is completed else CANCELLED)


@either_order
async def test_a_child_is_enqueued_while_its_parent_is_cancelled(store: Store, other: Other, in_turn: int) -> None:
    parent = await enqueue_one(store)
    child = after(new_job(), parent)
    both = [store.operator.cancel([parent], "unwanted"), enqueue_jobs(store, [child])]
    await meet(other, (LIVE, parent), *both[::in_turn])
    assert await reasons(store, [child.id]) == [parent_ended_reason(parent, CANCELLED)]


@pytest.mark.parametrize("firstborn", [False, True], ids=["its first", "its second"])
async def test_a_completion_that_began_before_a_child_was_enqueued_finds_it(
    store: Store, other: Other, firstborn: bool
) -> None:
    earlier, parent = await enqueue_one(store), await enqueue_one(store)
    jobs = await take(store)
    before = [after(new_job(), parent)] if firstborn else []
    await enqueue_jobs(store, before)
    await other.does(LIVE, earlier)
    settling = asyncio.create_task(store.jobs.settle([completed(job, f'"{job.id}"') for job in jobs]))
    await other.is_waited_for()
    # Its snapshot is older than this.
    child = after(new_job(), parent)
    await enqueue_jobs(store, [child])
    await other.commits()
    await settling
    assert {job.id: given(job) for job in await take(store, "r2")} == {
        each.id: f'"{parent}"' for each in (*before, child)
    }


async def test_two_parents_of_one_child_complete_at_once(store: Store, other: Other) -> None:
    first, second = await running(store), await running(store)
    takes = (("a", first.id), ("b", second.id))
    child = new_job(parents=(first.id, second.id), result_params=takes)
    await enqueue_jobs(store, [child])
    both = [store.jobs.settle([completed(job, f'"{job.id}"')]) for job in (first, second)]
    await meet(other, (LIVE, child.id), *both)
    (job,) = await take(store, "r2")
    assert job.id == child.id
    assert job.parent_results is not None
    assert all(parent.id in job.parent_results for parent in (first, second))


@either_order
async def test_one_parent_completes_while_the_other_dies(store: Store, other: Other, in_turn: int) -> None:
    first, second = await running(store), await running(store)
    child = new_job(parents=(first.id, second.id))
    await enqueue_jobs(store, [child])
    both = [store.jobs.settle([completed(first)]), store.jobs.settle([dead(second)])]
    await meet(other, (LIVE, child.id), *both[::in_turn])
    assert await reasons(store, [child.id]) == [parent_ended_reason(second.id, DEAD)]
    await store.operator.retry([second.id])
    assert await status_of(store, child.id) is BLOCKED
    await completes(store, second.id)
    assert await status_of(store, child.id) is PENDING


@either_order
async def test_a_link_is_cancelled_while_its_parent_completes(store: Store, other: Other, in_turn: int) -> None:
    first, second = await running(store), await running(store)
    child = new_job(parents=(first.id, second.id), result_params=(("given", first.id),))
    await enqueue_jobs(store, [child])
    both = [store.operator.cancel([child.id], "unwanted"), store.jobs.settle([completed(first, '"kept"')])]
    await meet(other, (LIVE, child.id), *both[::in_turn])
    assert await reasons(store, [child.id]) == ["unwanted"]
    await store.operator.retry([child.id])
    assert await reasons(store, [child.id]) == [WAITING_FOR_PARENT]
    await settle(store, completed(second))
    (job,) = await take(store, "r2")
    assert (job.id, given(job)) == (child.id, '"kept"')


@either_order
async def test_a_link_is_called_back_while_its_parent_completes(store: Store, other: Other, in_turn: int) -> None:
    parent = await running(store)
    child = after(new_job(), parent.id)
    await enqueue_jobs(store, [child])
    await store.operator.cancel([child.id], "unwanted")
    both = [store.operator.retry([child.id]), store.jobs.settle([completed(parent, '"kept"')])]
    await meet(other, (OVER, child.id), *both[::in_turn])
    (job,) = await take(store, "r2")
    assert (job.id, given(job)) == (child.id, '"kept"')


@either_order
async def test_a_link_comes_back_with_one_parent_while_the_other_completes(
    store: Store, other: Other, in_turn: int
) -> None:
    first, second = await running(store), await running(store)
    child = new_job(parents=(first.id, second.id), result_params=(("given", second.id),))
    await enqueue_jobs(store, [child])
    await settle(store, dead(first))
    both = [store.operator.retry([first.id]), store.jobs.settle([completed(second, '"kept"')])]
    await meet(other, (OVER, child.id), *both[::in_turn])
    assert await reasons(store, [child.id]) == [WAITING_FOR_PARENT]
    await completes(store, first.id)
    (job,) = await take(store, "r2")
    assert (job.id, given(job)) == (child.id, '"kept"')


@either_order
async def test_a_link_is_called_back_while_its_parent_dies(store: Store, other: Other, in_turn: int) -> None:
    parent = await running(store)
    child = after(new_job(), parent.id)
    await enqueue_jobs(store, [child])
    await store.operator.cancel([child.id], "unwanted")
    both = [store.operator.retry([child.id]), store.jobs.settle([dead(parent)])]
    await meet(other, (LIVE, parent.id), *both[::in_turn])
    assert await status_of(store, child.id) is CANCELLED
    assert await reasons(store, [child.id]) == [parent_ended_reason(parent.id, DEAD) if in_turn == 1 else "unwanted"]


@either_order
async def test_a_child_is_enqueued_while_its_dead_parent_is_retried(store: Store, other: Other, in_turn: int) -> None:
    parent = await put(store, DEAD, type="t")
    child = after(new_job(), parent)
    await meet(other, (OVER, parent), *[store.operator.retry([parent]), enqueue_jobs(store, [child])][::in_turn])
    assert await reasons(store, [child.id]) == [WAITING_FOR_PARENT]
    await completes(store, parent)
    assert await status_of(store, child.id) is PENDING


@either_order
async def test_a_link_gets_a_child_while_its_chain_falls(store: Store, other: Other, in_turn: int) -> None:
    first, second = links(2)
    await enqueue_jobs(store, [first, second])
    (job,) = await take(store)
    third = after(new_job(), second.id)
    both = [store.jobs.settle([dead(job)]), enqueue_jobs(store, [third])]
    await meet(other, (LIVE, second.id), *both[::in_turn])
    assert await statuses(store, [second.id, third.id]) == [CANCELLED, CANCELLED]
    await store.operator.retry([first.id])
    assert await statuses(store, [first.id, second.id, third.id]) == [PENDING, BLOCKED, BLOCKED]


async def test_both_parents_of_a_fallen_link_are_retried_at_once(store: Store, other: Other) -> None:
    first, second = await running(store), await running(store)
    child = new_job(parents=(first.id, second.id))
    await enqueue_jobs(store, [child])
    await settle(store, dead(first))
    await settle(store, dead(second))
    both = [store.operator.retry([parent.id]) for parent in (first, second)]
    await meet(other, (OVER, child.id), *both)
    assert await reasons(store, [child.id]) == [WAITING_FOR_PARENT]


async def test_one_parent_of_a_fallen_link_is_retried_while_the_other_dies(store: Store, other: Other) -> None:
    first, second = await running(store), await running(store)
    child = new_job(parents=(first.id, second.id))
    await enqueue_jobs(store, [child])
    await settle(store, dead(first))
    both = [store.operator.retry([first.id]), store.jobs.settle([dead(second)])]
    await meet(other, (OVER, child.id), *both)
    assert await reasons(store, [child.id]) == [parent_ended_reason(second.id, DEAD)]
