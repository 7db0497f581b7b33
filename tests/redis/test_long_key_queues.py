"""A line in which more may go on than one call of a script moves: the next admissions let them."""

from tests.support.clock import ManualClock
from tests.support.key_queues import enqueue_with_key, look_again, take
from tests.support.seed import completed, look, new_job, settle
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

WAITING = 1200
"""More than twice what a call moves: see MAX_UP in key_queue.lua."""


async def blocked(store: Store) -> int:
    return (await store.operator.counts()).queues["default"]["blocked"]


async def wide_key_queue(store: Store) -> None:
    """Very many who do not mind others."""
    for start in range(0, WAITING, 200):
        await enqueue_with_key(store, min(200, WAITING - start), key_limit=10_000)


async def test_a_job_not_admitted_by_the_call_that_freed_the_slots_is_admitted_later(store: Store) -> None:
    await enqueue_with_key(store)
    await enqueue_with_key(store)
    await wide_key_queue(store)
    assert await blocked(store) == WAITING + 1
    (holder,) = await take(store)
    await settle(store, completed(holder))
    left = await blocked(store)
    assert 0 < left < WAITING, "one call moves many, but not all"
    while (admitted := await store.jobs.admit(100)).next_due_in == 0:
        assert admitted.jobs == 0
    assert await blocked(store) == 0
    taken = []
    while more := await take(store, limit=2 * WAITING, most=2 * WAITING):
        taken += more
    assert len({job.id for job in taken}) == WAITING + 1


async def test_key_slots_of_a_long_key_queue_are_all_different(store: Store, clock: ManualClock) -> None:
    """Gaps are filled again; two in one slot would let too many in."""
    await enqueue_with_key(store, 50, key_limit=50)
    jobs = await take(store, limit=50, most=50)
    await store.jobs.settle([completed(job) for job in jobs[::3]])
    ids = await enqueue_with_key(store, 40, key_limit=50)
    await look_again(store)
    seated = [id_ for id_ in ids if (await look(store, id_)).status is Status.PENDING]
    assert seated == ids[: len(jobs[::3])]
    clock.advance(SECOND)
    await store.jobs.settle([completed(job) for job in jobs[1::3]])
    again = await take(store, "r2", limit=100, most=100)
    assert len(again) == min(len(ids), len(jobs[::3]) + len(jobs[1::3]))


async def test_a_new_job_waits_behind_a_key_queue_that_has_not_all_moved_yet(store: Store) -> None:
    await enqueue_with_key(store)
    await enqueue_with_key(store)
    await wide_key_queue(store)
    (holder,) = await take(store)
    await settle(store, completed(holder))
    new = new_job(concurrency_key="k", key_limit=10_000)
    await store.jobs.enqueue([new])
    assert (await look(store, new.id)).reason == "waits for its concurrency key"
    while (await store.jobs.admit(100)).next_due_in == 0:
        pass
    assert (await look(store, new.id)).status is Status.PENDING
