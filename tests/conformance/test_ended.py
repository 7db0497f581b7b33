"""ended: jobs by the moment at which they ended, for the event stream."""

from tests.support.clock import ManualClock
from tests.support.seed import (
    cancelled,
    claim_one,
    completed,
    dead,
    enqueue,
    enqueue_one,
    failed,
    open_lease,
    put,
    running,
    settle,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store
from windlass.store.records import NEWEST


async def test_finished_jobs_and_no_others_are_reported_with_how_they_ended(store: Store) -> None:
    ids = {status: await put(store, status) for status in Status}
    found = await store.operator.ended(0, None, 100)
    assert {end.id: end.status for end in found.ends} == {ids[status]: status for status in FINISHED}
    jobs = {job.id: job for job in await store.operator.get([end.id for end in found.ends]) if job}
    for end in found.ends:
        job = jobs[end.id]
        assert (end.queue, end.type, end.attempt) == (job.queue, job.type, job.attempt)
        assert (end.error, end.reason, end.tags) == (job.error, job.reason, job.tags)
        assert end.at <= found.now


async def test_the_order_is_that_of_ends_however_old_the_jobs_are(store: Store, clock: ManualClock) -> None:
    jobs = [await running(store, f"r{number}", queue=f"q{number % 2}") for number in range(4)]
    for job, ending in zip(reversed(jobs), (dead, completed, cancelled, completed), strict=True):
        clock.advance(SECOND)
        await settle(store, ending(job))
    found = (await store.operator.ended(0, None, 100)).ends
    assert [end.id for end in found] == [job.id for job in reversed(jobs)]
    later = await store.operator.ended(found[1].at, found[1].id, 100)
    assert [end.id for end in later.ends] == [end.id for end in found[2:]]
    assert (await store.operator.ended(found[-1].at + 1, None, 100)).ends == ()


async def test_pages_miss_nothing_and_repeat_nothing_among_jobs_that_ended_together(store: Store) -> None:
    ids = await enqueue(store, 30) + await enqueue(store, 30, queue="other")
    await store.operator.cancel(ids, "unwanted")
    seen: list[str] = []
    since, after = 0, None
    while page := (await store.operator.ended(since, after, 7)).ends:
        seen += [end.id for end in page]
        since, after = page[-1].at, page[-1].id
    assert sorted(seen) == sorted(ids)


async def test_without_a_moment_only_the_clock_is_read(store: Store, clock: ManualClock) -> None:
    await put(store, Status.DEAD)
    clock.advance(SECOND)
    found = await store.operator.ended(None, None, 100)
    assert found.ends == ()
    assert (await store.operator.ended(found.now, None, 100)).ends == ()


async def test_a_retried_job_is_reported_again_when_it_ends_again(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.DEAD, type="t")
    first = (await store.operator.ended(0, None, 10)).ends
    await store.operator.retry([id_])
    assert (await store.operator.ended(0, None, 10)).ends == ()
    clock.advance(SECOND)
    await open_lease(store, "again")
    await settle(store, completed(await claim_one(store, "again")))
    (again,) = (await store.operator.ended(0, None, 10)).ends
    assert (again.id, again.status) == (id_, Status.COMPLETED)
    assert again.at > first[0].at


async def test_a_failure_that_is_retried_is_no_end(store: Store) -> None:
    await settle(store, failed(await running(store)))
    assert (await store.operator.ended(0, None, 10)).ends == ()


async def test_the_order_holds_with_different_retentions(store: Store, clock: ManualClock) -> None:
    kept = {Status.COMPLETED: 60 * SECOND, Status.CANCELLED: 3600 * SECOND, Status.DEAD: 7200 * SECOND}
    await store.queues.declare({"default": QueueSettings(retention=kept)})
    ends = []
    for number, ending in enumerate((dead, cancelled, completed, dead, cancelled)):
        job = await running(store, f"r{number}")
        clock.advance(SECOND)
        await settle(store, ending(job))
        ends.append(job.id)
    assert [end.id for end in (await store.operator.ended(0, None, 10)).ends] == ends


async def test_a_history_that_lost_its_newest_job_still_tells_of_the_next(store: Store, clock: ManualClock) -> None:
    first, newest = await enqueue_one(store), await enqueue_one(store)
    await store.operator.cancel([first], "unwanted")
    clock.advance(SECOND)
    await store.operator.cancel([newest], "unwanted")
    at = (await store.operator.ended(0, None, 10)).ends[-1].at
    await store.operator.delete([newest])
    clock.advance(SECOND)
    last = await enqueue_one(store)
    await store.operator.cancel([last], "unwanted")
    assert [end.id for end in (await store.operator.ended(at, newest, 10)).ends] == [last]


async def test_ends_of_dead_jobs_are_listed_latest_first_page_by_page(store: Store, clock: ManualClock) -> None:
    jobs = [await running(store, f"r{number}", queue=f"q{number % 2}") for number in range(7)]
    for number, job in enumerate(jobs):
        clock.advance(SECOND if number % 3 == 0 else 0)
        await settle(store, (dead, failed, dead, completed)[number % 4](job))
    seen: list[str] = []
    before = NEWEST
    while page := await store.operator.dead_ends(2, before):
        seen += [end.id for end in page]
        before = (page[-1].at, page[-1].id)
    latest = [job.id for job in await store.operator.failures(100) if job.status is Status.DEAD]
    assert seen == latest
    assert len(seen) == 4
