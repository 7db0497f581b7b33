"""change and run_now: waiting jobs get another time, priority, payload or queue."""

from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_ids,
    claim_one,
    enqueue_one,
    failed,
    look,
    new_job,
    open_lease,
    put,
    settle,
    status_of,
    worker_info,
)
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.status import WAITING, Status, may_move
from windlass.store.contract import Store
from windlass.store.records import Transition


async def change(store: Store, id_: JobId, **fields: Any) -> Transition | None:
    """Change one job."""
    return (await store.operator.change([id_], JobChange(**fields)))[0]


EVERYTHING: dict[str, Any] = {"priority": 9, "delay": 60 * SECOND, "payload": '{"n": 2}', "queue": "other"}


@pytest.mark.parametrize("status", sorted(WAITING))
async def test_a_waiting_job_is_changed_in_all_it_has(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status, payload='{"n": 1}')
    clock.advance(SECOND)
    moved = await change(store, id_, **EVERYTHING)
    found = await look(store, id_)
    assert moved == Transition(id_, found.status, done=True)
    assert (found.priority, found.payload, found.queue) == (9, {"n": 2}, "other")
    assert found.run_at == to_datetime(clock.wall() + 60 * SECOND)
    assert found.updated_at == to_datetime(clock.wall())
    assert found.status is status or may_move(status, found.status)


@pytest.mark.parametrize("status", sorted(set(Status) - WAITING))
async def test_others_are_refused_and_unchanged(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await change(store, id_, **EVERYTHING) == Transition(id_, status, done=False)
    assert await look(store, id_) == before
    assert "other" not in {queue.name for queue in await store.queues.list()}


@pytest.mark.parametrize("status", sorted(set(Status) - WAITING - {Status.DEAD}))
async def test_the_payload_of_a_job_that_runs_or_ended_well_stays(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await change(store, id_, payload='{"n": 2}') == Transition(id_, status, done=False)
    assert await look(store, id_) == before


async def test_a_dead_job_is_repaired_and_runs_with_its_new_payload(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.DEAD, type="t", payload='{"n": 1}')
    before = await look(store, id_)
    clock.advance(SECOND)
    assert await change(store, id_, payload='{"n": 2}') == Transition(id_, Status.DEAD, done=True)
    repaired = await look(store, id_)
    assert repaired == msgspec.structs.replace(before, payload={"n": 2}, version=repaired.version)
    assert (await store.operator.counts()).totals[Status.DEAD] == 1
    await store.operator.retry([id_])
    await open_lease(store)
    assert (await claim_one(store)).payload == '{"n": 2}'


async def test_a_repair_does_not_prolong_the_window_of_a_key(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.DEAD, idempotency_key="k", idempotency_window=10 * SECOND)
    clock.advance(9 * SECOND)
    await change(store, id_, payload='{"n": 2}')
    assert await store.jobs.enqueue([new_job(idempotency_key="k")]) == [Enqueued(id_, existing=True)]
    clock.advance(2 * SECOND)
    assert not (await store.jobs.enqueue([new_job(idempotency_key="k")]))[0].existing


async def test_what_is_not_named_stays_as_it_was(store: Store) -> None:
    id_ = await put(store, Status.SCHEDULED, payload='{"n": 1}', priority=3, tags=("a",), meta='{"m": 1}')
    before = await look(store, id_)
    await change(store, id_, priority=4)
    after = await look(store, id_)
    assert after.priority == 4
    assert (after.payload, after.queue, after.run_at) == (before.payload, before.queue, before.run_at)
    assert (after.tags, after.meta, after.status) == (before.tags, before.meta, before.status)


MOVES = [
    # status, is the new time in the future, status after
    (Status.PENDING, True, Status.SCHEDULED),
    (Status.PENDING, False, Status.PENDING),
    (Status.SCHEDULED, True, Status.SCHEDULED),
    (Status.SCHEDULED, False, Status.PENDING),
    (Status.FAILED, True, Status.FAILED),
    (Status.FAILED, False, Status.PENDING),
    (Status.BLOCKED, True, Status.SCHEDULED),
    (Status.BLOCKED, False, Status.BLOCKED),
]


@pytest.mark.parametrize(("status", "later", "after"), MOVES)
async def test_a_new_time_moves_a_job(
    store: Store, clock: ManualClock, status: Status, later: bool, after: Status
) -> None:
    id_ = await put(store, status)
    moment = clock.wall() + (5 * SECOND if later else -5 * SECOND)
    assert await change(store, id_, run_at=moment) == Transition(id_, after, done=True)
    found = await look(store, id_)
    assert (found.status, found.run_at) == (after, to_datetime(moment))


async def test_a_job_that_was_postponed_runs_at_its_new_time(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store)
    await change(store, id_, delay=5 * SECOND)
    await open_lease(store)
    assert await claim_ids(store) == []
    clock.advance(5 * SECOND)
    assert (await store.jobs.admit(10)).jobs == 1
    assert await claim_ids(store) == [id_]


async def test_a_job_that_was_brought_forward_falls_in_behind_those_that_wait(
    store: Store, clock: ManualClock
) -> None:
    late = await enqueue_one(store, delay=DAY)
    waits = await enqueue_one(store)
    clock.advance(1)
    await change(store, late, run_at=clock.wall() - DAY)
    await open_lease(store)
    assert await claim_ids(store) == [waits, late]


async def test_a_parked_job_that_is_postponed_waits_for_its_time(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.BLOCKED, type="t")
    await change(store, id_, delay=5 * SECOND)
    await store.workers.beat(worker_info(types=("t",)))
    assert await status_of(store, id_) is Status.SCHEDULED
    assert (await look(store, id_)).reason is None


async def test_a_parked_job_stays_parked_through_other_changes(store: Store) -> None:
    id_ = await put(store, Status.BLOCKED, type="t")
    await change(store, id_, priority=5, queue="other")
    found = await look(store, id_)
    assert (found.status, found.reason) == (Status.BLOCKED, "no worker for type")
    await store.workers.beat(worker_info(types=("t",)))
    assert await status_of(store, id_) is Status.PENDING


async def test_a_new_priority_keeps_the_rank_among_equals(store: Store, clock: ManualClock) -> None:
    ids = []
    for _ in range(3):
        ids.append(await enqueue_one(store))
        clock.advance(1)
    for id_ in reversed(ids):
        await change(store, id_, priority=1)
    last = await enqueue_one(store, priority=1)
    await change(store, ids[2], priority=2)
    await open_lease(store)
    assert await claim_ids(store) == [ids[2], ids[0], ids[1], last]


async def test_a_job_runs_with_its_new_payload_from_its_new_queue(store: Store) -> None:
    id_ = await enqueue_one(store, payload="{}")
    await change(store, id_, payload='{"n": 7}', queue="other")
    await open_lease(store)
    assert await claim_ids(store) == []
    job = await claim_one(store, queues=("other",))
    assert (job.id, job.payload, job.queue) == (id_, '{"n": 7}', "other")


async def test_a_key_goes_with_its_job_into_another_queue(store: Store) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    await change(store, id_, queue="other")
    there, here = new_job(idempotency_key="k", queue="other"), new_job(idempotency_key="k")
    assert await store.jobs.enqueue([there, here]) == [Enqueued(id_, existing=True), Enqueued(here.id)]


@pytest.mark.parametrize("ended", [False, True], ids=["live", "in its window"])
async def test_a_job_does_not_go_where_its_key_is_held(store: Store, ended: bool) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    holder = await enqueue_one(store, queue="other", idempotency_key="k", idempotency_window=DAY)
    if ended:
        await store.operator.cancel([holder], "")
    before = await look(store, id_)
    assert await change(store, id_, queue="other", priority=5) == Transition(
        id_, Status.PENDING, done=False, holder=holder
    )
    assert await look(store, id_) == before, "nothing of a refused change is done"
    again = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([again]) == [Enqueued(id_, existing=True)]


async def test_a_change_to_the_queue_it_is_in_keeps_the_key(store: Store) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    assert await change(store, id_, queue="default") == Transition(id_, Status.PENDING, done=True)
    assert await store.jobs.enqueue([new_job(idempotency_key="k")]) == [Enqueued(id_, existing=True)]


async def test_a_moved_job_is_counted_in_its_new_queue(store: Store) -> None:
    id_ = await enqueue_one(store)
    await change(store, id_, queue="other")
    queues = (await store.operator.counts()).queues
    assert queues["other"]["pending"] == 1
    assert queues.get("default", {}).get("pending", 0) == 0
    assert "other" in {queue.name for queue in await store.queues.list()}


async def test_several_jobs_are_changed_alike(store: Store) -> None:
    first, second, gone = await enqueue_one(store), await put(store, Status.DEAD), new_job().id
    assert await store.operator.change([first, gone, second], JobChange(priority=1)) == [
        Transition(first, Status.PENDING, done=True),
        None,
        Transition(second, Status.DEAD, done=False),
    ]


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.FAILED])
async def test_a_job_that_waits_for_its_time_runs_now(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status, type="t")
    before = await look(store, id_)
    clock.advance(SECOND)
    assert await store.operator.run_now([id_]) == [Transition(id_, Status.PENDING, done=True)]
    found = await look(store, id_)
    assert (found.status, found.reason, found.run_at) == (Status.PENDING, None, to_datetime(clock.wall()))
    assert (found.failures, found.attempt) == (before.failures, before.attempt), "a retry would start its budget anew"
    await open_lease(store)
    assert await claim_ids(store) == [id_]


async def test_a_pending_job_runs_anyway(store: Store, clock: ManualClock) -> None:
    first = await enqueue_one(store)
    clock.advance(1)
    second = await enqueue_one(store)
    before = await look(store, first)
    assert await store.operator.run_now([first]) == [Transition(first, Status.PENDING, done=True)]
    assert await look(store, first) == before
    await open_lease(store)
    assert await claim_ids(store) == [first, second], "and loses no place by being asked for"


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING, Status.SCHEDULED, Status.FAILED}))
async def test_what_waits_for_something_else_or_is_over_cannot_run_now(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await store.operator.run_now([id_]) == [Transition(id_, status, done=False)]
    assert await look(store, id_) == before


async def test_a_job_that_is_to_run_now_comes_behind_those_that_wait(store: Store, clock: ManualClock) -> None:
    late = await enqueue_one(store, delay=DAY)
    waits = await enqueue_one(store)
    clock.advance(1)
    await store.operator.run_now([late])
    await open_lease(store)
    assert await claim_ids(store) == [waits, late]


async def test_a_job_that_is_to_run_now_still_expires(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, delay=DAY, expires=2 * DAY)
    await store.operator.run_now([id_])
    clock.advance(2 * DAY)
    await open_lease(store)
    assert await claim_ids(store) == []
    await store.jobs.expire(10)
    assert await status_of(store, id_) is Status.CANCELLED


async def test_a_budget_goes_on_after_run_now(store: Store) -> None:
    id_ = await put(store, Status.FAILED, type="t", max_attempts=2)
    await store.operator.run_now([id_])
    await open_lease(store)
    await settle(store, failed(await claim_one(store)))
    assert await status_of(store, id_) is Status.DEAD


async def test_a_job_that_is_not_there_is_answered_with_none(store: Store) -> None:
    assert await store.operator.run_now([new_job().id]) == [None]
    assert await change(store, new_job().id, priority=1) is None
