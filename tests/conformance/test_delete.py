"""delete: finished jobs go, and only they."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import look, new_job, put
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import DAY, SECOND
from windlass.core.status import FINISHED, LIVE, Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter, Transition


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_a_finished_job_is_gone(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    assert await store.operator.delete([id_]) == [Transition(id_, status, done=True)]
    assert await store.operator.get([id_]) == [None]
    assert (await store.operator.list(JobFilter(), 10, None)).items == ()
    assert await store.operator.delete([id_]) == [None]


@pytest.mark.parametrize("status", sorted(LIVE))
async def test_a_live_job_is_refused_and_unchanged(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await store.operator.delete([id_]) == [Transition(id_, status, done=False)]
    assert await look(store, id_) == before


async def test_a_deleted_job_can_not_be_retried_or_cancelled(store: Store) -> None:
    id_ = await put(store, Status.DEAD)
    await store.operator.delete([id_])
    assert await store.operator.retry([id_]) == [None]
    assert await store.operator.cancel([id_], "") == [None]


async def test_a_job_that_ended_more_than_a_day_ago_leaves_nothing(store: Store, clock: ManualClock) -> None:
    """Its id was remembered for as long as it was kept; a day after its end that is long enough."""
    id_ = await put(store, Status.COMPLETED)
    clock.advance(DAY + SECOND)
    await store.operator.delete([id_])
    assert await store.jobs.enqueue([new_job(id=id_)]) == [Enqueued(id_)]
