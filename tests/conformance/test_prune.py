"""prune: finished jobs are dropped when their retention is over, not before, and at the latest a day after."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import FINISHES, put, status_of
from windlass.core.flow.queue import DEFAULT_RETENTION, QueueSettings
from windlass.core.moments import DAY, SECOND
from windlass.core.reference import refer
from windlass.core.status import LIVE, Status
from windlass.store.contract import Store


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_a_finished_job_is_kept_for_its_retention(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status)
    clock.advance(DEFAULT_RETENTION[status] - 1)
    assert list(await store.operator.prune(10)) == []
    assert await status_of(store, id_) is status
    clock.advance(1 + DAY)
    assert set(await store.operator.prune(10)) <= {id_}
    assert await store.operator.get([id_]) == [None]


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_the_queue_says_how_long(store: Store, clock: ManualClock, status: Status) -> None:
    await store.queues.declare({"default": QueueSettings(retention={status: 3 * SECOND})})
    id_ = await put(store, status)
    clock.advance(3 * SECOND - 1)
    assert list(await store.operator.prune(10)) == []
    clock.advance(1)
    assert list(await store.operator.prune(10)) == [id_]


async def test_live_jobs_are_never_pruned(store: Store, clock: ManualClock) -> None:
    ids = [await put(store, status) for status in sorted(LIVE)]
    clock.advance(10 * 365 * DAY)
    assert list(await store.operator.prune(100)) == []
    assert [await status_of(store, id_) for id_ in ids] == sorted(LIVE)


async def test_no_more_than_the_limit_goes_at_a_time(store: Store, clock: ManualClock) -> None:
    await store.queues.declare({"default": QueueSettings(retention={Status.COMPLETED: 3 * SECOND})})
    ids = [await put(store, Status.COMPLETED) for _ in range(5)]
    clock.advance(3 * SECOND)
    rounds = [await store.operator.prune(2) for _ in range(4)]
    assert [len(dropped) for dropped in rounds] == [2, 2, 1, 0]
    assert sorted(id_ for dropped in rounds for id_ in dropped) == sorted(ids)


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.COMPLETED])
async def test_jobs_of_a_day_go_and_those_of_the_next_stay(store: Store, clock: ManualClock, status: Status) -> None:
    old = [await put(store, status) for _ in range(3)]
    clock.advance(2 * DAY)
    young = [await put(store, status) for _ in range(3)]
    clock.advance(DEFAULT_RETENTION[status] - DAY)
    assert set(await store.operator.prune(100)) <= set(old)
    assert [await status_of(store, id_) for id_ in young] == [status] * 3
    assert await store.operator.get(old) == [None] * 3
    assert (await store.operator.counts()).totals[status] == 3


async def test_a_dropped_job_that_has_a_blob_is_named(store: Store, clock: ManualClock) -> None:
    """The pruner removes the blobs after it; of jobs without any a store that drops by the day need not tell."""
    plain = await put(store, Status.CANCELLED)
    reference = refer("payload", bytes(8), b"{}").text
    large = await put(store, Status.CANCELLED, payload=reference)
    clock.advance(DEFAULT_RETENTION[Status.CANCELLED] + DAY)
    named: set[str] = set()
    for _ in range(3):
        named |= set(await store.operator.prune(100))
    assert large in named
    assert await store.operator.get([plain, large]) == [None, None]


async def test_what_was_left_for_a_year_goes_and_what_has_just_ended_stays(store: Store, clock: ManualClock) -> None:
    """Partitions may be used again after some time, for other days."""
    for days in (1, 31, 32, 64, 400):
        old = await put(store, Status.COMPLETED)
        clock.advance(days * DAY)
        young = await put(store, Status.COMPLETED)
        for _ in range(3):
            await store.operator.prune(100)
        gone = days > 7
        assert (await store.operator.get([old]) == [None]) is gone
        assert await status_of(store, young) is Status.COMPLETED
        expected = 1 if gone else 2
        assert (await store.operator.counts()).totals[Status.COMPLETED] == expected
        clock.advance(9 * DAY)
        await store.operator.prune(100)
        await store.operator.prune(100)


async def test_the_retention_of_a_retried_job_starts_anew(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.CANCELLED)
    clock.advance(6 * DAY)
    await store.operator.retry([id_])
    await store.operator.cancel([id_], "")
    clock.advance(6 * DAY)
    assert list(await store.operator.prune(10)) == []
