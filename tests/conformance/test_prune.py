"""prune: finished jobs are dropped when their retention is over, not before."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import FINISHES, put, status_of
from windlass.core.moments import DAY, SECOND
from windlass.core.queue import DEFAULT_RETENTION, QueueSettings
from windlass.core.status import LIVE, Status
from windlass.store.contract import Store


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_a_finished_job_is_kept_for_its_retention(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status)
    clock.advance(DEFAULT_RETENTION[status] - 1)
    assert list(await store.operator.prune(10)) == []
    assert await status_of(store, id_) is status
    clock.advance(1)
    assert list(await store.operator.prune(10)) == [id_]
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
    ids = [await put(store, Status.COMPLETED) for _ in range(5)]
    clock.advance(8 * DAY)
    rounds = [await store.operator.prune(2) for _ in range(4)]
    assert [len(dropped) for dropped in rounds] == [2, 2, 1, 0]
    assert sorted(id_ for dropped in rounds for id_ in dropped) == sorted(ids)


async def test_the_retention_of_a_retried_job_starts_anew(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.CANCELLED)
    clock.advance(6 * DAY)
    await store.operator.retry([id_])
    await store.operator.cancel([id_], "")
    clock.advance(6 * DAY)
    assert list(await store.operator.prune(10)) == []
