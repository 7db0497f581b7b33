"""rescue and end: what a gone runner held is put back, exactly once, and only when it is gone."""

from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    claim_ids,
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    failed,
    let_lapse,
    look,
    open_lease,
    request,
    requeued,
    running,
    settle,
    status_of,
)
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import CRASH_LIMIT
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Campaign, Rescued, RunnerEnd, Settled


async def end(store: Store, runner: str, *started: Claimed, crashed: bool = True) -> list[Rescued]:
    held = frozenset((job.id, job.attempt) for job in started)
    return await store.leases.end(RunnerEnd(runner=runner, started=held, crashed=crashed))


async def test_nothing_is_rescued_while_the_lease_holds(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(LEASE - 1)
    assert await store.leases.rescue(10) == []
    assert await status_of(store, job.id) is Status.RUNNING


async def test_the_jobs_of_a_lapsed_lease_are_put_back(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await let_lapse(store, clock)
    assert await store.leases.rescue(10) == [Rescued(job.id, "t", "default", 1, Status.PENDING, "rescued", "r1")]
    found = await look(store, job.id)
    assert (found.status, found.rescues, found.failures, found.crashes) == (Status.PENDING, 1, 0, 0)
    assert (found.worker, found.claimed_at, found.lease_expires_at) == (None, None, None)
    assert [(each.attempt, each.outcome) for each in found.attempts] == [(1, "rescued")]


async def test_a_rescue_happens_once(store: Store, clock: ManualClock) -> None:
    await running(store)
    await let_lapse(store, clock)
    assert len(await store.leases.rescue(10)) == 1
    assert await store.leases.rescue(10) == []


async def test_a_renewed_lease_is_left_alone(store: Store, clock: ManualClock) -> None:
    """A slow job is never taken away."""
    job = await running(store)
    for _ in range(20):
        clock.advance(LEASE // 3)
        await store.leases.renew("w1", ["r1"], LEASE)
        assert await store.leases.rescue(10) == []
    assert await status_of(store, job.id) is Status.RUNNING


async def test_when_one_lapses_the_others_keep_their_jobs(store: Store, clock: ManualClock) -> None:
    lost = await running(store, "r1")
    await let_lapse(store, clock)
    kept = await running(store, "r2")
    assert [job.id for job in await store.leases.rescue(10)] == [lost.id]
    assert await status_of(store, kept.id) == Status.RUNNING
    assert await settle(store, completed(kept)) == Settled.SETTLED


async def test_a_rescued_job_keeps_its_rank(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(SECOND)
    other = await enqueue_one(store)
    await let_lapse(store, clock)
    await store.leases.rescue(10)
    await open_lease(store, "r2")
    assert await claim_ids(store, "r2") == [job.id, other]


async def test_no_number_of_rescues_makes_a_job_dead(store: Store, clock: ManualClock) -> None:
    """Hosts and networks fail; that is not the job's doing."""
    id_ = await enqueue_one(store, max_attempts=1)
    for n in range(CRASH_LIMIT + 2):
        await open_lease(store, f"r{n}")
        assert await claim_ids(store, f"r{n}") == [id_]
        await let_lapse(store, clock)
        await store.leases.rescue(10)
    found = await look(store, id_)
    assert (found.status, found.rescues, found.attempt) == (Status.PENDING, CRASH_LIMIT + 2, CRASH_LIMIT + 2)


async def test_no_more_runners_than_the_limit_are_rescued_at_a_time(store: Store, clock: ManualClock) -> None:
    for n in range(3):
        await running(store, f"r{n}")
    await let_lapse(store, clock)
    assert [len(await store.leases.rescue(2)) for _ in range(3)] == [2, 1, 0]


async def test_after_a_general_silence_a_rescuer_gives_grace_instead(store: Store, clock: ManualClock) -> None:
    """Time in which no process could reach the store does not count as silence."""
    job = await running(store)
    clock.advance(DAY)
    assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_grace_lasts_one_lease_and_not_longer(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(DAY)
    await store.leases.rescue(10)
    await let_lapse(store, clock)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_the_first_call_after_the_silence_brings_the_grace(store: Store, clock: ManualClock) -> None:
    await running(store)
    for n in range(3):
        clock.advance(DAY)
        if n == 0:
            await open_lease(store, "r2", "w2")
        elif n == 1:
            await store.leases.renew("w2", ["r2"], LEASE)
        else:
            await store.leader.campaign(Campaign("w2", LEASE))
        assert await store.leases.rescue(10) == []
        assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)


async def test_a_wall_clock_that_jumps_ends_no_lease(store: Store, clock: ManualClock) -> None:
    await running(store)
    for jump in (365 * DAY, -2 * 365 * DAY):
        clock.jump_wall(jump)
        assert await store.leases.rescue(10) == []


async def test_a_stopped_runner_requeues_what_it_held(store: Store) -> None:
    job = await running(store, max_attempts=1)
    assert [(each.status, each.outcome) for each in await end(store, "r1", job, crashed=False)] == [
        (Status.PENDING, "requeued")
    ]
    found = await look(store, job.id)
    assert (found.requeues, found.crashes, found.rescues) == (1, 0, 0)


async def test_a_job_that_had_not_started_is_requeued_by_a_crash(store: Store) -> None:
    await enqueue(store, 2)
    await open_lease(store)
    started, prefetched = await store.jobs.claim(request())
    outcomes = {each.id: each.outcome for each in await end(store, "r1", started)}
    assert outcomes == {started.id: "crashed", prefetched.id: "requeued"}
    assert (await look(store, prefetched.id)).requeues == 1


async def test_jobs_of_an_expired_lease_are_rescued_whether_it_got_a_grace_or_not(
    store: Store, clock: ManualClock
) -> None:
    job = await running(store)
    clock.advance(DAY)
    assert await store.leases.rescue(10) == []
    (rescued,) = await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=True, expired=True))
    assert (rescued.id, rescued.outcome) == (job.id, "rescued")
    found = await look(store, job.id)
    assert (found.status, found.rescues, found.requeues, found.crashes) == (Status.PENDING, 1, 0, 0)
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ("r1",)


async def test_only_a_crash_while_alone_is_the_jobs_own(store: Store) -> None:
    await enqueue(store, 3, max_attempts=1)
    await open_lease(store)
    jobs = await store.jobs.claim(request())
    assert {each.outcome for each in await end(store, "r1", *jobs)} == {"crashed among several"}
    for job in jobs:
        found = await look(store, job.id)
        assert (found.status, found.crashes, found.suspicions) == (Status.PENDING, 0, 1)


async def test_the_third_crash_while_alone_is_death(store: Store) -> None:
    id_ = await enqueue_one(store, max_attempts=100)
    statuses = []
    for n in range(CRASH_LIMIT):
        await open_lease(store, f"r{n}")
        (rescued,) = await end(store, f"r{n}", await claim_one(store, f"r{n}"))
        statuses.append(rescued.status)
    assert statuses == [Status.PENDING, Status.PENDING, Status.DEAD]
    found = await look(store, id_)
    assert (found.crashes, found.reason) == (3, "crashed its runner 3 times")


async def test_crashes_and_failures_spend_the_same_budget(store: Store, clock: ManualClock) -> None:
    job = await running(store, max_attempts=2)
    await settle(store, failed(job))
    clock.advance(DAY)
    await store.jobs.admit(10)
    await open_lease(store, "r2")
    (rescued,) = await end(store, "r2", await claim_one(store, "r2"))
    assert rescued.status is Status.DEAD
    assert (await look(store, job.id)).reason == "crashed; 2 of 2 attempts used"


async def test_an_attempt_that_is_not_the_one_that_started_is_requeued(store: Store) -> None:
    old = await running(store)
    await settle(store, requeued(old))
    await claim_one(store)
    assert [each.outcome for each in await end(store, "r1", old)] == ["requeued"]


async def test_a_job_that_was_asked_to_stop_is_cancelled_and_not_put_back(store: Store, clock: ManualClock) -> None:
    job = await running(store, idempotency_key="k")
    await store.operator.cancel([job.id], "stop it")
    await let_lapse(store, clock)
    assert [each.status for each in await store.leases.rescue(10)] == [Status.CANCELLED]
    assert await status_of(store, job.id) is Status.CANCELLED


async def test_what_was_settled_is_not_put_back(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    assert await end(store, "r1", job) == []
    assert await status_of(store, job.id) is Status.COMPLETED


async def test_an_end_reported_twice_does_nothing_more(store: Store) -> None:
    job = await running(store)
    await end(store, "r1", job)
    await open_lease(store, "r2")
    await claim_one(store, "r2")
    assert await end(store, "r1", job) == []
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_dead_job_of_a_crash_frees_its_key(store: Store) -> None:
    job = await running(store, max_attempts=1, idempotency_key="k")
    await end(store, "r1", job)
    assert await status_of(store, job.id) is Status.DEAD
    other = await enqueue_one(store, idempotency_key="k")
    assert other != job.id
