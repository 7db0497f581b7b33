"""Verbs on hundreds of jobs at once, and on one that is named twice: each is answered for itself."""

from tests.support.clock import ManualClock
from tests.support.seed import completed, enqueue, enqueue_one, failed, look, new_job, open_lease, request, running
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed, LogLine
from windlass.core.moments import DAY, to_datetime
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Note, Settled, Transition

MANY = 320


async def totals(store: Store) -> dict[str, int]:
    """Jobs by status, where there are any."""
    return {status: jobs for status, jobs in (await store.operator.counts()).totals.items() if jobs}


async def claim_all(store: Store) -> list[Claimed]:
    """Everything that is pending, in so many claims as it takes."""
    jobs: list[Claimed] = []
    while taken := await store.jobs.claim(request(limit=MANY, most=MANY)):
        jobs += taken
    return jobs


def done(ids: list[JobId], status: Status) -> list[Transition]:
    return [Transition(id_, status, done=True) for id_ in ids]


async def test_hundreds_are_settled_at_once(store: Store) -> None:
    await enqueue(store, MANY)
    await open_lease(store)
    jobs = await claim_all(store)
    batch = [failed(job) if place % 2 else completed(job) for place, job in enumerate(jobs)]
    assert await store.jobs.settle(batch) == [Settled.SETTLED] * MANY
    assert await totals(store) == {"completed": MANY // 2, "failed": MANY // 2}
    assert await store.jobs.settle(batch) == [Settled.ALREADY] * MANY
    assert await store.jobs.held("r1") == []


async def test_hundreds_are_cancelled_retried_changed_and_deleted_at_once(store: Store) -> None:
    ids = await enqueue(store, MANY // 2) + await enqueue(store, MANY // 2, queue="other", idempotency_window=DAY)
    assert await store.operator.cancel(ids, "enough") == done(ids, Status.CANCELLED)
    assert await totals(store) == {"cancelled": MANY}
    assert await store.operator.retry(ids) == done(ids, Status.PENDING)
    assert await store.operator.change(ids, JobChange(delay=DAY, priority=3)) == done(ids, Status.SCHEDULED)
    assert await store.operator.run_now(ids) == done(ids, Status.PENDING)
    assert await store.operator.change(ids, JobChange(queue="third")) == done(ids, Status.PENDING)
    assert (await store.operator.counts()).queues["third"]["pending"] == MANY
    await store.operator.cancel(ids, "")
    assert await store.operator.delete(ids) == done(ids, Status.CANCELLED)
    assert await totals(store) == {}


async def test_hundreds_speak_at_once(store: Store) -> None:
    await enqueue(store, MANY)
    await open_lease(store)
    jobs = await claim_all(store)
    for text in ("one", "two"):
        line = LogLine(to_datetime(0), 1, text * 100)
        await store.jobs.note([Note(id=job.id, queue=job.queue, attempt=1, lines=(line,)) for job in jobs])
    for job in await store.operator.get([jobs[0].id, jobs[-1].id]):
        assert job is not None
        assert [line.text[:3] for line in job.logs] == ["one", "two"]


async def test_a_job_that_is_named_twice_is_moved_once(store: Store) -> None:
    id_, unknown = await enqueue_one(store), new_job().id
    again = Transition(id_, Status.CANCELLED, done=False)
    assert await store.operator.cancel([id_, unknown, id_], "") == [*done([id_], Status.CANCELLED), None, again]
    back = [*done([id_], Status.PENDING), Transition(id_, Status.PENDING, done=False)]
    assert await store.operator.retry([id_, id_]) == back
    assert await store.operator.change([id_, id_], JobChange(queue="other")) == done([id_, id_], Status.PENDING)
    assert (await look(store, id_)).queue == "other"
    await store.operator.cancel([id_], "")
    assert await store.operator.delete([id_, id_]) == [*done([id_], Status.CANCELLED), None]


async def test_two_outcomes_of_one_attempt_in_a_batch_are_one(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    assert await store.jobs.settle([failed(job), failed(job)]) == [Settled.SETTLED, Settled.ALREADY]
    found = await look(store, job.id)
    assert (found.failures, len(found.attempts)) == (1, 1)
