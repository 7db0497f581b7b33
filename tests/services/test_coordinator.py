"""The coordinator: one process leads, does the duties, and leaves leadership to another in the end."""

from typing import Any

import pytest

from tests.services.parts import Flaky, Listener
from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    let_lapse,
    look,
    open_lease,
    request,
    running,
    settle,
    status_of,
    worker_info,
)
from windlass import SchemaMismatch, Status
from windlass.coordinator.coordinator import AFTER_FAILURE_SECONDS, TERM_SECONDS, Coordinator
from windlass.coordinator.duties import (
    MAX_ADMITTED,
    MAX_BATCHES,
    MAX_EXPIRED,
    MIN_PAUSE,
    admit,
    emit_rescued,
    expire,
    prune,
    sample,
)
from windlass.core.events import Event
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter
from windlass.core.stats.samples import LAG, MINUTE
from windlass.core.stats.timeline import SampleQuery
from windlass.observe.logs import sentence
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


def candidate(store: Any, name: str) -> tuple[Coordinator, Listener]:
    """A candidate, and what is heard of it."""
    listener = Listener()
    return Coordinator(store, name, listener), listener


async def test_the_first_of_two_candidates_gets_leadership_and_keeps_it(store: Store) -> None:
    (first, heard), (second, silence) = candidate(store, "a"), candidate(store, "b")
    for now in range(0, 30, 3):
        await first.step(now)
        await second.step(now)
    assert (first.term, second.term) == (1, None)
    assert (heard.names, silence.names) == (["LeadershipGained"], [])


async def test_only_the_holder_does_the_duties(store: Store, clock: ManualClock) -> None:
    (first, _), (second, _) = candidate(store, "a"), candidate(store, "b")
    await first.step(0)
    id_ = await enqueue_one(store, delay=SECOND)
    clock.advance(SECOND)
    await second.step(10)
    assert await status_of(store, id_) is Status.SCHEDULED
    await first.step(10)
    assert await status_of(store, id_) is Status.PENDING


async def test_the_coordinator_ages_jobs_that_have_waited_long(store: Store, clock: ManualClock) -> None:
    await store.queues.change("default", QueueSettings(ageing=60 * SECOND))
    low = await enqueue_one(store)
    await enqueue_one(store, priority=5)
    clock.advance(60 * SECOND)
    holder, heard = candidate(store, "a")
    await holder.step(0)
    assert heard.names == ["LeadershipGained", "JobsAged"]
    await open_lease(store)
    assert (await claim_one(store)).id == low


async def test_the_holder_cancels_what_has_expired_and_tells_of_it(store: Store, clock: ManualClock) -> None:
    holder, heard = candidate(store, "a")
    ids = [await enqueue_one(store, delay=delay, expires=2 * SECOND) for delay in (0, SECOND, 60 * SECOND)]
    await holder.step(0)
    clock.advance(2 * SECOND)
    await holder.step(10)
    assert [await status_of(store, id_) for id_ in ids] == [Status.CANCELLED] * 3
    assert heard.names == ["LeadershipGained", "JobsExpired"]


async def test_expiry_goes_on_at_once_while_there_is_more(store: Store, clock: ManualClock) -> None:
    await enqueue(store, MAX_EXPIRED + 1, expires=1)
    clock.advance(1)
    assert [await expire(store, Listener()) for _ in range(2)] == [0.0, 0.5]
    assert (await store.operator.counts()).totals["cancelled"] == MAX_EXPIRED + 1


async def test_leadership_that_is_resigned_is_taken_at_once(store: Store) -> None:
    (first, heard), (second, _) = candidate(store, "a"), candidate(store, "b")
    await first.step(0)
    await first.resign()
    await second.step(0)
    assert (first.term, second.term) == (None, 2)
    assert heard.names == ["LeadershipGained", "LeadershipLost"]


async def test_a_process_without_leadership_resigns_from_none(store: Store) -> None:
    (first, _), (second, silence) = candidate(store, "a"), candidate(store, "b")
    await first.step(0)
    await second.step(0)
    await second.resign()
    await first.step(100)
    assert (first.term, silence.names) == (1, [])


async def test_a_coordinator_that_slept_through_its_term_learns_that_it_is_over(
    store: Store, clock: ManualClock
) -> None:
    (first, heard), (second, _) = candidate(store, "a"), candidate(store, "b")
    await first.step(0)
    clock.advance(int((TERM_SECONDS + 1) * SECOND))
    await second.step(0)
    if second.term is None:  # the store gave a grace for the general silence; it ends too
        clock.advance(int((TERM_SECONDS + 1) * SECOND))
        await second.step(2)
    await first.step(100)
    assert (first.term, second.term) == (None, 2)
    assert heard.names == ["LeadershipGained", "LeadershipLost"]


async def test_jobs_of_silent_runners_are_rescued_and_told(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    holder, heard = candidate(store, "a")
    await let_lapse(store, clock)
    await holder.step(0)
    assert (await look(store, job.id)).rescues == 1
    assert heard.names == ["LeadershipGained", "JobRescued"]


async def test_of_very_many_rescued_jobs_the_first_are_reported_and_how_many_more(
    store: Store, clock: ManualClock
) -> None:
    await open_lease(store)
    await enqueue(store, 12)
    await store.jobs.claim(request())
    holder, heard = candidate(store, "a")
    await let_lapse(store, clock)
    await holder.step(0)
    assert heard.names == ["LeadershipGained", *["JobRescued"] * 3, "JobsRescued"]
    assert sentence(heard.heard[-1])[1] == "9 more jobs of dead runners rescued: pending now"


async def test_a_stopped_job_that_was_to_be_cancelled_is_reported_once(store: Store) -> None:
    job = await running(store)
    await store.operator.cancel([job.id], "unwanted")
    heard: list[Event] = []
    emit_rescued(
        await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False)),
        heard.append,
    )
    said = f"job {job.id} (t) attempt 1 ended with its runner, and is not run again: the job is cancelled"
    assert [sentence(event)[1] for event in heard] == [said]


async def test_jobs_that_no_worker_can_run_are_parked_and_reported(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    id_ = await enqueue_one(store, type="stranger")
    holder, heard = candidate(store, "a")
    await holder.step(0)
    assert await status_of(store, id_) is Status.BLOCKED
    assert heard.names == ["LeadershipGained", "JobsParked"]


async def test_what_is_past_retention_is_dropped_and_reported(store: Store, clock: ManualClock) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 3600 * SECOND}))
    job = await running(store)
    await settle(store, completed(job))
    clock.advance(3600 * SECOND)
    holder, heard = candidate(store, "a")
    await holder.step(0)
    assert await store.operator.get([job.id]) == [None]
    assert heard.names == ["LeadershipGained", "JobsPruned"]


async def test_admission_comes_back_exactly_when_the_next_job_is_due(store: Store) -> None:
    assert await admit(store) == 0.5
    await enqueue(store, 1, delay=SECOND // 10)
    assert await admit(store) == 0.1
    await enqueue(store, 1, delay=60 * SECOND)
    assert await admit(store) == 0.1


async def test_admission_and_pruning_go_on_at_once_while_there_is_more(store: Store, clock: ManualClock) -> None:
    await enqueue(store, MAX_BATCHES * MAX_ADMITTED + 1, delay=1)
    clock.advance(1)
    assert await admit(store) == 0.0
    assert (await store.operator.counts()).totals["pending"] == MAX_BATCHES * MAX_ADMITTED
    assert await admit(store) == 0.5
    assert await prune(store, Listener()) == 60.0


class View:
    """A store with one role replaced."""

    def __init__(self, store: Store, **roles: Any) -> None:
        self._store = store
        self.__dict__.update(roles)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_duty_that_failed_is_reported_and_done_again_while_the_others_go_on(store: Store) -> None:
    flaky = Flaky(store.jobs, "admit", ["before"])
    leases = Flaky(store.leases, "rescue", [])
    holder, heard = candidate(View(store, jobs=flaky, leases=leases), "a")
    await holder.step(0)
    assert heard.names == ["LeadershipGained", "DutyFailed"]
    assert (len(flaky.asked), len(leases.asked)) == (1, 1)
    await holder.step(AFTER_FAILURE_SECONDS / 2)
    assert len(flaky.asked) == 1
    await holder.step(AFTER_FAILURE_SECONDS)
    assert len(flaky.asked) == 2
    assert heard.names == ["LeadershipGained", "DutyFailed", "StoreRecovered"]


async def test_an_outage_is_reported_once_however_many_duties_meet_it_and_however_often(store: Store) -> None:
    admit = Flaky(store.jobs, "admit", ["before", "before"])
    rescue = Flaky(store.leases, "rescue", ["before"])
    holder, heard = candidate(View(store, jobs=admit, leases=rescue), "a")
    await holder.step(0)
    await holder.step(AFTER_FAILURE_SECONDS)
    assert (len(admit.asked), len(rescue.asked)) == (2, 2)
    assert heard.names == ["LeadershipGained", "DutyFailed"]
    await holder.step(2 * AFTER_FAILURE_SECONDS)
    assert heard.names == ["LeadershipGained", "DutyFailed", "StoreRecovered"]


async def test_a_campaign_that_failed_leaves_leadership_until_the_next(store: Store) -> None:
    flaky = Flaky(store.leader, "campaign", ["before"])
    holder, heard = candidate(View(store, leader=flaky), "a")
    await holder.step(0)
    assert (holder.term, heard.names) == (None, ["DutyFailed"])
    await holder.step(1)
    assert (holder.term, heard.names) == (1, ["DutyFailed", "StoreRecovered", "LeadershipGained"])


async def test_outages_are_reported_by_a_worker_that_lost_leadership_in_one(store: Store) -> None:
    leader = Flaky(store.leader, "campaign", ["", "before", "", "before"])
    holder, heard = candidate(View(store, jobs=Flaky(store.jobs, "admit", ["before"]), leader=leader), "a")
    await holder.step(0)
    await holder.step(3)
    assert heard.names == ["LeadershipGained", "DutyFailed", "LeadershipLost"]
    await store.leader.resign("a")
    other, _ = candidate(store, "b")
    await other.step(3)
    await holder.step(4)
    assert (holder.term, heard.names[3:]) == (None, ["StoreRecovered"])
    await holder.step(5)
    await holder.step(6)
    assert heard.names[4:] == ["DutyFailed", "StoreRecovered"]


async def test_a_schema_that_is_too_new_ends_the_coordinator(store: Store) -> None:
    class Newer:
        async def campaign(self, bid: Any) -> int:
            raise SchemaMismatch("too new")

    holder, _ = candidate(View(store, leader=Newer()), "a")
    with pytest.raises(SchemaMismatch):
        await holder.run()


async def test_leadership_is_not_the_runners_lease(store: Store) -> None:
    """A worker that lost a lease may still coordinate: the two have nothing to do with each other."""
    await open_lease(store, "a", "a")
    holder, _ = candidate(store, "a")
    await holder.step(0)
    assert holder.term == 1


async def test_the_holder_samples_each_minute_shortly_after_it_is_over(store: Store, clock: ManualClock) -> None:
    holder, _ = candidate(store, "a")
    await holder.step(0)
    await store.stats.record([Meter(queue="q", type="t", completed=3)])
    clock.advance(MINUTE + LAG)
    assert await sample(store) == 60.0
    window = SampleQuery(step=MINUTE, since=0, until=clock.wall())
    assert [each.completed for each in (await store.stats.samples(window)).meters if each.type] == [3]
    clock.advance(45 * SECOND)
    assert await sample(store) == 15.0


async def test_what_was_missed_is_made_up_with_pauses_for_other_duties(store: Store, clock: ManualClock) -> None:
    await sample(store)
    clock.advance(50 * MINUTE)
    waits = [await sample(store) for _ in range(3)]
    assert waits[:2] == [MIN_PAUSE] * 2
    assert waits[2] > 1
