"""Idempotency keys in full: the window after the end, and what an enqueue does to the job that stands."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    FINISHES,
    claim_ids,
    completed,
    enqueue_one,
    failed,
    look,
    new_job,
    open_lease,
    put,
    running,
    settle,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import DAY, SECOND
from windlass.core.status import FINISHED, WAITING, Status
from windlass.errors import KeyConflict
from windlass.store.contract import Store
from windlass.store.records import Transition

HOUR = 3600 * SECOND


def keyed(on_conflict: OnConflict = OnConflict.EXISTING, **fields: object) -> NewJob:
    """A new job with the key that all jobs of these tests share."""
    return new_job(idempotency_key="k", on_conflict=on_conflict, **fields)


async def holder_of(store: Store) -> JobId | None:
    """The holder of the key, by an enqueue that is refused if there is one (and takes the key otherwise)."""
    try:
        await store.jobs.enqueue([keyed(OnConflict.RAISE, delay=DAY)])
    except KeyConflict as conflict:
        return conflict.job_id
    return None


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_a_window_keeps_the_key_after_the_job_ended(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status, idempotency_key="k", idempotency_window=HOUR)
    assert (await look(store, id_)).idempotency_window == 3600
    clock.advance(HOUR - 1)
    assert await store.jobs.enqueue([keyed()]) == [Enqueued(id_, existing=True)]
    clock.advance(1)
    other = keyed()
    assert await store.jobs.enqueue([other]) == [Enqueued(other.id)]
    assert await holder_of(store) == other.id


async def test_the_window_counts_from_the_end_and_not_from_the_enqueue(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, idempotency_key="k", idempotency_window=HOUR)
    clock.advance(2 * HOUR)
    await store.operator.cancel([id_], "")
    clock.advance(HOUR - 1)
    assert await store.jobs.enqueue([keyed()]) == [Enqueued(id_, existing=True)]


async def test_the_window_belongs_to_the_job_that_ended(store: Store, clock: ManualClock) -> None:
    await put(store, Status.COMPLETED, idempotency_key="k")
    other = keyed(idempotency_window=HOUR)
    assert await store.jobs.enqueue([other]) == [Enqueued(other.id)], "the first one had asked for none"


@pytest.mark.parametrize("how", ["delete", "retention"])
async def test_the_window_outlives_the_record_of_its_job(store: Store, clock: ManualClock, how: str) -> None:
    if how == "retention":
        await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    id_ = await put(store, Status.COMPLETED, idempotency_key="k", idempotency_window=2 * DAY)
    await store.operator.delete([id_])
    assert await store.operator.get([id_]) == [None]
    clock.advance(2 * DAY - 1)
    await store.operator.prune(100)
    assert await store.jobs.enqueue([keyed()]) == [Enqueued(id_, existing=True)]
    # Its id is forgotten by now, but its key is still its own.
    assert await store.jobs.enqueue([keyed(OnConflict.RAISE, id=id_)]) == [Enqueued(id_, existing=True)]
    clock.advance(1)
    await store.operator.prune(100)
    assert await holder_of(store) is None


async def test_pruning_frees_no_key_of_a_live_job_nor_of_an_open_window(store: Store, clock: ManualClock) -> None:
    live = await enqueue_one(store, queue="other", idempotency_key="k")
    id_ = await put(store, Status.COMPLETED, idempotency_key="k", idempotency_window=300 * DAY)
    clock.advance(299 * DAY)
    await store.operator.prune(100)
    assert await store.jobs.enqueue([keyed(), keyed(queue="other")]) == [
        Enqueued(id_, existing=True),
        Enqueued(live, existing=True),
    ]


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_a_retry_within_its_own_window_holds_the_key_again(
    store: Store, clock: ManualClock, status: Status
) -> None:
    id_ = await put(store, status, idempotency_key="k", idempotency_window=HOUR)
    assert await store.operator.retry([id_]) == [Transition(id_, Status.PENDING, done=True)]
    clock.advance(2 * HOUR)
    await store.operator.prune(100)
    assert await holder_of(store) == id_, "held by a live job: no window ends that"
    await store.operator.cancel([id_], "")
    assert await holder_of(store) == id_, "and a window of its own follows"
    clock.advance(HOUR)
    assert await holder_of(store) is None


async def test_a_retry_is_refused_within_the_window_of_another(store: Store, clock: ManualClock) -> None:
    first = await put(store, Status.DEAD, idempotency_key="k")
    second = await put(store, Status.COMPLETED, idempotency_key="k", idempotency_window=HOUR)
    assert await store.operator.retry([first]) == [Transition(first, Status.DEAD, done=False, holder=second)]
    clock.advance(HOUR)
    assert await store.operator.retry([first]) == [Transition(first, Status.PENDING, done=True)]


@pytest.mark.parametrize("status", sorted(WAITING))
async def test_a_new_job_replaces_a_waiting_job(store: Store, status: Status) -> None:
    old = await put(store, status, idempotency_key="k", idempotency_window=HOUR)
    new = keyed(OnConflict.REPLACE, payload='{"n": 2}')
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id)]
    gone = await look(store, old)
    assert (gone.status, gone.reason) == (Status.CANCELLED, f"replaced by {new.id}")
    assert (await look(store, new.id)).payload == {"n": 2}
    assert await holder_of(store) == new.id


async def test_a_running_job_is_not_replaced(store: Store) -> None:
    old = await running(store, idempotency_key="k")
    new = keyed(OnConflict.REPLACE)
    assert await store.jobs.enqueue([new]) == [Enqueued(old.id, existing=True)]
    assert await store.operator.get([new.id]) == [None]
    assert await status_of(store, old.id) is Status.RUNNING


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_a_job_that_ended_within_its_window_is_not_replaced(store: Store, status: Status) -> None:
    old = await put(store, status, idempotency_key="k", idempotency_window=HOUR)
    assert await store.jobs.enqueue([keyed(OnConflict.REPLACE)]) == [Enqueued(old, existing=True)]
    assert await status_of(store, old) is status


async def test_a_replacement_with_nothing_to_replace_is_an_enqueue(store: Store) -> None:
    new = keyed(OnConflict.REPLACE)
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id)]


async def test_a_debounced_key_leaves_the_last_of_many(store: Store, clock: ManualClock) -> None:
    ids = []
    for _ in range(5):
        ids.append((await store.jobs.enqueue([keyed(OnConflict.REPLACE, delay=10 * SECOND)]))[0].id)
        clock.advance(SECOND)
    clock.advance(20 * SECOND)
    await store.jobs.admit(10)
    await open_lease(store)
    assert await claim_ids(store) == ids[-1:]
    assert [await status_of(store, id_) for id_ in ids[:-1]] == [Status.CANCELLED] * 4


@pytest.mark.parametrize("status", list(Status))
async def test_raise_names_the_existing_job_and_stores_nothing_of_the_bulk(store: Store, status: Status) -> None:
    old = await put(store, status, idempotency_key="k", idempotency_window=HOUR)
    before, others = await look(store, old), [new_job(idempotency_key="mine"), new_job(queue="new")]
    with pytest.raises(KeyConflict, match=f"idempotency key 'k' is held by job {old}") as caught:
        await store.jobs.enqueue([others[0], keyed(OnConflict.RAISE), others[1]])
    assert (caught.value.key, caught.value.job_id) == ("k", old)
    assert await store.operator.get([other.id for other in others]) == [None, None]
    assert await look(store, old) == before
    assert await store.jobs.enqueue(others) == [Enqueued(other.id) for other in others], "no key was left behind"


async def test_nothing_is_replaced_by_a_bulk_that_is_refused(store: Store) -> None:
    old, other = await enqueue_one(store, idempotency_key="k"), await enqueue_one(store, idempotency_key="l")
    refused = [keyed(OnConflict.REPLACE), new_job(idempotency_key="l", on_conflict=OnConflict.RAISE)]
    with pytest.raises(KeyConflict):
        await store.jobs.enqueue(refused)
    assert [await status_of(store, id_) for id_ in (old, other)] == [Status.PENDING, Status.PENDING]
    assert await holder_of(store) == old


@pytest.mark.parametrize("option", [OnConflict.REPLACE, OnConflict.RAISE])
@pytest.mark.parametrize("status", list(Status))
async def test_the_same_enqueue_again_returns_its_own_job(store: Store, option: OnConflict, status: Status) -> None:
    id_ = await put(store, status, idempotency_key="k", idempotency_window=HOUR, on_conflict=option)
    before = await look(store, id_)
    assert await store.jobs.enqueue([keyed(option, id=id_)]) == [Enqueued(id_, existing=True)]
    assert await look(store, id_) == before


async def test_a_replaced_job_enqueued_again_does_not_come_back(store: Store) -> None:
    first, second = keyed(OnConflict.REPLACE), keyed(OnConflict.REPLACE)
    await store.jobs.enqueue([first])
    await store.jobs.enqueue([second])
    assert await store.jobs.enqueue([first]) == [Enqueued(first.id, existing=True)]
    assert await store.jobs.enqueue([second]) == [Enqueued(second.id, existing=True)]
    assert (await status_of(store, first.id), await status_of(store, second.id)) == (Status.CANCELLED, Status.PENDING)


async def test_a_replaced_job_enqueued_again_stays_away_where_nothing_is_kept(store: Store) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.CANCELLED: 0}))
    first, second = keyed(OnConflict.REPLACE), keyed(OnConflict.REPLACE)
    await store.jobs.enqueue([first])
    await store.jobs.enqueue([second])
    assert await store.operator.get([first.id]) == [None]
    assert await store.jobs.enqueue([first]) == [Enqueued(first.id, existing=True)]
    assert await status_of(store, second.id) is Status.PENDING


async def test_a_replaced_job_is_retried_only_when_its_key_is_free(store: Store) -> None:
    first = await enqueue_one(store, idempotency_key="k")
    second = await enqueue_one(store, idempotency_key="k", on_conflict=OnConflict.REPLACE)
    assert await store.operator.retry([first]) == [Transition(first, Status.CANCELLED, done=False, holder=second)]
    await store.operator.cancel([second], "")
    assert await store.operator.retry([first]) == [Transition(first, Status.PENDING, done=True)]


async def test_jobs_of_one_bulk_meet_each_other_in_their_order(store: Store) -> None:
    first, second, third = keyed(), keyed(OnConflict.REPLACE), keyed()
    assert await store.jobs.enqueue([first, second, third]) == [
        Enqueued(first.id),
        Enqueued(second.id),
        Enqueued(second.id, existing=True),
    ]
    gone = await look(store, first.id)
    assert (gone.status, gone.reason) == (Status.CANCELLED, f"replaced by {second.id}")
    assert await store.operator.get([third.id]) == [None]
    assert await holder_of(store) == second.id
    await open_lease(store)
    assert await claim_ids(store) == [second.id]


async def test_a_replacement_within_a_bulk_passes_the_key_on(store: Store) -> None:
    old = await enqueue_one(store, idempotency_key="k")
    jobs = [keyed(OnConflict.REPLACE) for _ in range(3)]
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id) for job in jobs]
    statuses = [await status_of(store, id_) for id_ in (old, *(job.id for job in jobs))]
    assert statuses == [Status.CANCELLED] * 3 + [Status.PENDING]
    assert await holder_of(store) == jobs[-1].id
    counts = (await store.operator.counts()).totals
    assert (counts["cancelled"], counts["pending"]) == (3, 1)


async def test_a_conflict_within_a_bulk_refuses_all_of_it(store: Store) -> None:
    first, second = keyed(), keyed(OnConflict.RAISE)
    with pytest.raises(KeyConflict, match=first.id):
        await store.jobs.enqueue([first, second])
    assert await store.operator.get([first.id, second.id]) == [None, None]
    assert await holder_of(store) is None


async def test_a_failed_attempt_frees_nothing(store: Store) -> None:
    job = await running(store, idempotency_key="k", idempotency_window=HOUR)
    await settle(store, failed(job))
    assert await holder_of(store) == job.id


async def test_a_thousand_keys_in_one_bulk(store: Store) -> None:
    jobs = [new_job(idempotency_key=f"k{n}") for n in range(1000)]
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id) for job in jobs]
    again = [new_job(idempotency_key=f"k{n}") for n in range(1000)]
    assert await store.jobs.enqueue(again) == [Enqueued(job.id, existing=True) for job in jobs]


async def test_the_window_of_a_completion_is_kept_with_the_others_of_its_batch(store: Store) -> None:
    plain, windowed = (
        await running(store, "r1"),
        await running(store, "r2", idempotency_key="k", idempotency_window=HOUR),
    )
    await store.jobs.settle([completed(plain), completed(windowed)])
    assert await holder_of(store) == windowed.id
