"""The order of those who wait, when the server's clock is set back."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, open_lease, request
from windlass.core.moments import DAY, SECOND
from windlass.store.contract import Store

TYPES = ("t", "u", "v")


@pytest.mark.parametrize("second", TYPES[:2])
@pytest.mark.parametrize("third", TYPES)
async def test_a_job_enqueued_after_the_clock_was_set_back_does_not_overtake_waiting_ones(
    store: Store, clock: ManualClock, second: str, third: str
) -> None:
    waits = await enqueue_one(store, type="t")
    clock.jump_wall(-DAY)
    late = await enqueue_one(store, type=second)
    clock.advance(SECOND)
    later = await enqueue_one(store, type=third)
    await open_lease(store)
    jobs = await store.jobs.claim(request(types=TYPES))
    assert [job.id for job in jobs] == [waits, late, later]


async def test_types_come_in_the_order_in_which_they_were_enqueued(store: Store, clock: ManualClock) -> None:
    ids = []
    for type_ in ("u", "t", "v", "t", "u"):
        ids.append(await enqueue_one(store, type=type_))
        clock.advance(1)
    await open_lease(store)
    assert [job.id for job in await store.jobs.claim(request(types=TYPES))] == ids
