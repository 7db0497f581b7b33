"""Groups: which members have ended is read from their jobs, in every queue, and the last end wakes the group."""

import asyncio

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import completed, dead, new_job, open_lease, request, snoozed, status_of
from windlass.client.groups.ends import GroupEnds
from windlass.client.groups.members import Walk, first_live
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_id, new_group_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd, Settled

QUEUES = ("q0", "q1", "q2")
TYPES = ("t", GROUP_TYPE)


async def enqueue_group(store: Store, size: int, group: JobId | None = None) -> JobId:
    """A group with members in several queues, and a callback; its id."""
    id_ = group or new_group_id()
    jobs = [NewJob(id=id_, type=GROUP_TYPE, payload="{}", delay=60 * SECOND, queue="q0")]
    jobs.append(new_job(id=callback_id(id_, Role.THEN), parent=id_, parents=(id_,), queue="q1"))
    jobs += [new_job(id=member_id(id_, i), parent=id_, queue=QUEUES[i % 3]) for i in range(size)]
    await store.jobs.enqueue(jobs)
    return id_


async def claim_all(store: Store, claim: int = 1) -> dict[JobId, Claimed]:
    """Everything that may run, by id."""
    await open_lease(store)
    found = await store.jobs.claim(request(claim=claim, queues=QUEUES, types=TYPES, limit=100))
    return {job.id: job for job in found}


async def end(store: Store, *settlements: Settlement) -> None:
    assert await store.jobs.settle(settlements) == [Settled.SETTLED] * len(settlements)


def report(ends: GroupEnds, job: Claimed, status: Status) -> None:
    ends.note([(job, status)])


async def test_the_first_live_member_is_found_in_any_queue_until_there_is_none(store: Store) -> None:
    group = await enqueue_group(store, 4)
    jobs = await claim_all(store)
    for index in (0, 2, 1, 3):
        await end(store, completed(jobs[member_id(group, index)]))
        left = [i for i in range(4) if await status_of(store, member_id(group, i)) is Status.RUNNING]
        expected = member_id(group, left[0]) if left else None
        assert await first_live(store.operator, group) == expected
    assert await status_of(store, callback_id(group, Role.THEN)) is Status.BLOCKED


async def test_a_walk_counts_members_in_order_and_goes_on_where_it_stopped(store: Store) -> None:
    group = await enqueue_group(store, 7)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in (0, 1, 2, 4, 5)))
    walk = Walk(store.operator, group, 7, allowed=0, age=0)
    assert (await walk.run(), walk.done, walk.reason) == (False, 3, None)
    await end(store, completed(jobs[member_id(group, 3)]))
    assert (await walk.run(3), walk.done, walk.reason) == (False, 6, None)
    await end(store, completed(jobs[member_id(group, 6)]))
    assert (await walk.run(6), walk.done, walk.reason) == (True, 7, None)


@pytest.mark.parametrize("lost", [1, 4])
async def test_a_walk_notices_a_lost_member_also_behind_a_live_one(store: Store, lost: int) -> None:
    group = await enqueue_group(store, 6)
    jobs = await claim_all(store)
    await end(store, completed(jobs[member_id(group, 0)]), dead(jobs[member_id(group, lost)]))
    walk = Walk(store.operator, group, 6, allowed=0, age=0)
    assert await walk.run()
    assert walk.reason == f"its member {member_id(group, lost)} is dead (index {lost})"
    ended = Walk(store.operator, group, 6, allowed=None, age=0)
    await ended.run()
    assert (ended.done, ended.reason) == (2 if lost == 1 else 1, None)


async def test_a_dropped_member_counts_as_its_tombstone_tells(store: Store) -> None:
    group = await enqueue_group(store, 4)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in (0, 1, 3)), dead(jobs[member_id(group, 2)]))
    await store.operator.delete([member_id(group, i) for i in range(4)])
    walk = Walk(store.operator, group, 4, allowed=0, age=0)
    assert await walk.run()
    assert (walk.done, walk.reason) == (2, f"its member {member_id(group, 2)} is not kept any more (index 2)")
    assert await Walk(store.operator, group, 4, allowed=None, age=0).run()


async def test_a_member_that_is_not_stored_yet_is_waited_for_in_the_first_minute(store: Store) -> None:
    group = await enqueue_group(store, 2)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in range(2)))
    young = Walk(store.operator, group, 3, allowed=0, age=59 * SECOND)
    assert (await young.run(), young.done, young.reason) == (False, 2, None)
    old = Walk(store.operator, group, 3, allowed=0, age=61 * SECOND)
    assert await old.run()
    assert (old.done, old.reason is None) == (2, False)


async def test_members_of_a_large_group_that_are_not_stored_yet_are_waited_for_longer(store: Store) -> None:
    """On Redis a list is stored in portions; its first members may end long before the last is there."""
    group = await enqueue_group(store, 2)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in range(2)))
    walk = Walk(store.operator, group, 300_000, allowed=0, age=300 * SECOND)
    assert (await walk.run(), walk.done, walk.reason) == (False, 2, None)


async def test_the_last_two_members_end_in_two_runners_and_the_group_is_woken(store: Store) -> None:
    for number in range(5):
        group = await enqueue_group(store, 2)
        jobs = await claim_all(store, number + 1)

        async def end_one(job: Claimed) -> None:
            ends = GroupEnds(store.operator)
            await end(store, completed(job))
            report(ends, job, Status.COMPLETED)
            await ends.check()

        await asyncio.gather(*(end_one(jobs[member_id(group, index)]) for index in range(2)))
        assert await status_of(store, group) is Status.PENDING


async def test_a_group_with_a_live_member_is_not_woken_and_one_with_a_lost_member_is(store: Store) -> None:
    group = await enqueue_group(store, 3)
    jobs = await claim_all(store)
    ends = GroupEnds(store.operator)
    await end(store, completed(jobs[member_id(group, 0)]))
    report(ends, jobs[member_id(group, 0)], Status.COMPLETED)
    await ends.check()
    assert await status_of(store, group) is Status.SCHEDULED
    await end(store, dead(jobs[member_id(group, 1)]))
    report(ends, jobs[member_id(group, 1)], Status.DEAD)
    await ends.check()
    assert await status_of(store, group) is Status.PENDING


async def test_a_group_that_looks_too_early_is_woken_again(store: Store) -> None:
    group = await enqueue_group(store, 1)
    await store.operator.run_now([group])
    jobs = await claim_all(store)
    ends = GroupEnds(store.operator)
    await end(store, completed(jobs[member_id(group, 0)]))
    report(ends, jobs[member_id(group, 0)], Status.COMPLETED)
    await ends.check()
    assert await status_of(store, group) is Status.RUNNING
    await end(store, snoozed(jobs[group], seconds=30))
    await ends.check()
    assert await status_of(store, group) is Status.PENDING


async def test_a_settlement_that_is_repeated_changes_nothing(store: Store) -> None:
    group = await enqueue_group(store, 2)
    jobs = await claim_all(store)
    first = jobs[member_id(group, 0)]
    ends = GroupEnds(store.operator)
    for answer in (Settled.SETTLED, Settled.ALREADY):
        assert await store.jobs.settle([completed(first)]) == [answer]
        report(ends, first, Status.COMPLETED)
        await ends.check()
    assert await status_of(store, group) is Status.SCHEDULED


async def test_a_job_that_only_has_an_id_like_a_group_is_never_woken(store: Store) -> None:
    group = new_group_id()
    await store.jobs.enqueue([new_job(id=group, delay=60 * SECOND, queue="q0")])
    child = new_job(id=member_id(group, 0), parent=group, queue="q0")
    await store.jobs.enqueue([child])
    jobs = await claim_all(store)
    ends = GroupEnds(store.operator)
    await end(store, completed(jobs[child.id]))
    report(ends, jobs[child.id], Status.COMPLETED)
    await ends.check()
    assert await status_of(store, group) is Status.SCHEDULED


async def test_the_completed_group_releases_its_callback_and_a_cancelled_one_cancels_it(store: Store) -> None:
    for number, (ending, expected) in enumerate([(completed, Status.PENDING), (dead, Status.CANCELLED)]):
        group = await enqueue_group(store, 0)
        await store.operator.run_now([group])
        jobs = await claim_all(store, number + 1)
        await end(store, ending(jobs[group]))
        assert await status_of(store, callback_id(group, Role.THEN)) is expected


async def test_a_member_that_crashed_its_runner_once_too_often_is_lost(store: Store) -> None:
    group = await enqueue_group(store, 2)
    jobs = await claim_all(store)
    await end(store, completed(jobs[member_id(group, 0)]))
    job, runner = jobs[member_id(group, 1)], "r1"
    for attempt in range(1, 4):
        started = frozenset({(job.id, job.attempt)})
        await store.leases.end(RunnerEnd(runner=runner, started=started, crashed=True))
        if attempt < 3:
            runner = await open_lease(store, f"r{attempt + 1}")
            (job,) = await store.jobs.claim(request(runner, queues=QUEUES, types=("t",)))
    assert await status_of(store, member_id(group, 1)) is Status.DEAD
    walk = Walk(store.operator, group, 2, allowed=0, age=0)
    assert await walk.run()
    assert walk.reason == f"its member {member_id(group, 1)} is dead (index 1)"


async def test_a_member_that_expired_is_lost(store: Store, clock: ManualClock) -> None:
    group = new_group_id()
    await store.jobs.enqueue(
        [
            NewJob(id=group, type=GROUP_TYPE, payload="{}", delay=3600 * SECOND, queue="q0"),
            new_job(id=member_id(group, 0), parent=group, queue="q0", expires=SECOND),
        ]
    )
    clock.advance(2 * SECOND)
    assert len(await store.jobs.expire(10)) == 1
    walk = Walk(store.operator, group, 1, allowed=0, age=0)
    assert await walk.run()
    assert walk.reason == f"its member {member_id(group, 0)} is cancelled (index 0)"
