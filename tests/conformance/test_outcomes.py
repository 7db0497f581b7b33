"""outcomes: how jobs ended of which nothing else is remembered."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import FINISHES, completed, enqueue_one, failed, put, running, settle
from windlass.core.flow.queue import settings
from windlass.core.ids import new_id
from windlass.core.moments import DAY
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_what_a_queue_does_not_keep_has_the_outcome_of_its_last_attempt(store: Store, status: Status) -> None:
    await store.queues.declare({"default": settings(retention=dict.fromkeys(FINISHES, 0))})
    job = await running(store)
    settlement = FINISHES[status](job)
    await settle(store, settlement)
    assert await store.operator.outcomes([job.id]) == [settlement.outcome]


async def test_what_was_deleted_has_the_outcome_of_its_last_attempt(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    await store.operator.delete([job.id])
    assert await store.operator.outcomes([job.id]) == ["completed"]


async def test_what_never_ran_has_an_empty_one(store: Store) -> None:
    id_ = await enqueue_one(store)
    await store.operator.cancel([id_], "unwanted")
    await store.operator.delete([id_])
    assert await store.operator.outcomes([id_]) == [""]


@pytest.mark.parametrize("status", sorted(Status))
async def test_what_is_there_has_none(store: Store, status: Status) -> None:
    assert await store.operator.outcomes([await put(store, status)]) == [None]


async def test_what_was_never_there_has_none_and_each_has_its_place(store: Store) -> None:
    jobs = [await running(store, f"r{n}") for n in range(2)]
    await settle(store, completed(jobs[0]))
    await settle(store, failed(jobs[1]))
    await store.operator.delete([jobs[0].id])
    ids = [new_id(), jobs[1].id, jobs[0].id]
    assert await store.operator.outcomes(ids) == [None, None, "completed"]
    assert await store.operator.outcomes([]) == []


async def test_it_is_remembered_for_a_day(store: Store, clock: ManualClock) -> None:
    id_ = await put(store, Status.COMPLETED)
    await store.operator.delete([id_])
    clock.advance(DAY + 1)
    await store.operator.prune(100)
    assert await store.operator.outcomes([id_]) == [None]


def test_every_finished_status_is_tried_here() -> None:
    assert set(FINISHES) == FINISHED
