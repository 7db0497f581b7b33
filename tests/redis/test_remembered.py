"""An id is remembered until a day after the end of its dropped job, whether it is cleared away or not."""

from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import claim_one, completed, new_job, open_lease, settle, status_of
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.redis.store import RedisStore


async def test_an_id_is_new_again_when_its_tombstone_is_old(store: RedisStore, clock: ManualClock) -> None:
    await rule(store, retention={Status.COMPLETED: 0})
    job = new_job()
    await store.jobs.enqueue([job])
    await open_lease(store, length=3 * DAY)
    await settle(store, completed(await claim_one(store)))
    clock.advance(DAY - SECOND)
    (before,) = await store.jobs.enqueue([job])
    clock.advance(2 * SECOND)
    (after,) = await store.jobs.enqueue([job])
    assert (before.existing, after.existing) == (True, False)
    assert await status_of(store, job.id) is Status.PENDING
    await store.operator.prune(10)
    (again,) = await store.jobs.enqueue([job])
    assert again.existing
