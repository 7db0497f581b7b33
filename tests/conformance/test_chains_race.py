"""A child is enqueued at the very moment in which its parent settles: they always find each other."""

import asyncio
from collections.abc import Callable

import pytest

from tests.support.chains import after, enqueue_jobs, given, statuses
from tests.support.key_queues import take
from tests.support.processes import PATIENCE
from tests.support.seed import completed, dead, new_job
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.contract import Store


@pytest.mark.parametrize("queue", ["default", "other"])
@pytest.mark.parametrize("ending", [completed, dead])
@pytest.mark.parametrize("settles_first", [True, False])
async def test_a_child_enqueued_while_its_parent_is_just_settling_is_never_left_waiting(
    store: Store, ending: Callable[[Claimed], Settlement], settles_first: bool, queue: str
) -> None:
    await enqueue_jobs(store, [new_job() for _ in range(50)])
    parents = await take(store)
    children = [after(new_job(queue=queue), parent.id) for parent in parents]

    async def settle_it(parent: Claimed) -> None:
        await store.jobs.settle([ending(parent)])

    async def hand_it_in(child: NewJob) -> None:
        await store.jobs.enqueue([child])

    for parent, child in zip(parents, children, strict=True):
        both = [settle_it(parent), hand_it_in(child)]
        await asyncio.gather(*(both if settles_first else reversed(both)))
    expected = Status.PENDING if ending is completed else Status.CANCELLED
    assert set(await statuses(store, [child.id for child in children])) == {expected}


async def test_children_and_parents_that_meet_in_one_crowd_all_find_each_other(store: Store) -> None:
    await enqueue_jobs(store, [new_job() for _ in range(100)])
    parents = await take(store)
    children = [after(new_job(), parent.id) for parent in parents]
    crowd = store.with_timeout(PATIENCE)  # two hundred calls on a few connections
    settling = [crowd.jobs.settle([completed(parent, f'"{parent.id}"')]) for parent in parents]
    enqueueing = [crowd.jobs.enqueue([child]) for child in children]
    await asyncio.gather(*(each for pair in zip(settling, enqueueing, strict=True) for each in pair))
    found = {job.id: given(job) for job in await take(store, "r2")}
    assert found == {child.id: f'"{child.parents[0]}"' for child in children}
