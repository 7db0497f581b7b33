"""failures: what failed last, first."""

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, dead, enqueue_one, failed, open_lease, put, running, settle
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import NEWEST
from windlass.store.rows import failure_key


async def test_failed_and_dead_jobs_are_listed_and_no_others(store: Store) -> None:
    ids = {status: await put(store, status) for status in Status}
    found = await store.operator.failures(10)
    assert {job.id for job in found} == {ids[Status.FAILED], ids[Status.DEAD]}
    assert all(job.error is not None for job in found)


async def test_what_failed_last_is_first_however_old_the_job_is(store: Store, clock: ManualClock) -> None:
    older, newer, newest = [await running(store, f"r{number}") for number in range(3)]
    for job, ending in ((newest, dead), (older, failed), (newer, dead)):
        clock.advance(SECOND)
        await settle(store, ending(job))
    assert [job.id for job in await store.operator.failures(10)] == [newer.id, older.id, newest.id]
    assert [job.id for job in await store.operator.failures(2)] == [newer.id, older.id]


async def test_a_job_that_came_through_in_the_end_is_no_failure(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await settle(store, failed(job))
    assert [each.status for each in await store.operator.failures(10)] == ["failed"]
    clock.advance(60 * SECOND)
    await store.jobs.admit(10)
    await open_lease(store, "r2")
    await settle(store, completed(await claim_one(store, "r2")))
    assert await store.operator.failures(10) == []


async def test_a_revived_job_is_no_failure_any_more(store: Store) -> None:
    id_ = await put(store, Status.DEAD)
    await store.operator.retry([id_])
    await enqueue_one(store)
    assert await store.operator.failures(10) == []


async def test_the_list_goes_on_from_a_place_among_failures_of_one_moment(store: Store, clock: ManualClock) -> None:
    jobs = [await running(store, f"r{number}", queue=f"q{number % 2}") for number in range(6)]
    for number, job in enumerate(jobs):
        clock.advance(SECOND if number == 3 else 0)
        await settle(store, (dead, failed)[number % 2](job))
    seen, before = [], NEWEST
    while page := await store.operator.failures(2, before):
        seen += [job.id for job in page]
        before = failure_key(page[-1])
    assert len(seen) == 6
    assert set(seen[:3]) == {job.id for job in jobs[3:]}
    assert seen == [job.id for job in await store.operator.failures(100)]
