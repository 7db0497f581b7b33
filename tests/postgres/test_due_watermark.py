"""The watermark of what is due: it rises past what is over, never past what is not committed yet."""

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, status_of
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.watermarks import DueWatermark, raise_due_watermark
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs.admit import admit

_WATERMARK = "SELECT due FROM windlass.due_watermark"


def access_of(store: Store) -> Access:
    assert isinstance(store, PostgresStore)
    return Access(store._server, None)


async def test_the_watermark_waits_for_uncommitted_transactions(
    store: Store, clock: ManualClock, other: Other
) -> None:
    access, watermark = access_of(store), DueWatermark()
    id_ = await enqueue_one(store, delay=100 * SECOND)
    due = clock.wall() + 100 * SECOND
    await other.does("UPDATE windlass.jobs SET run_at = %s WHERE id = %s", due - 90 * SECOND, id_)
    clock.advance(50 * SECOND)
    for _ in range(3):
        await access.once(lambda db: raise_due_watermark(db, watermark))
    assert await other.does(_WATERMARK) == [(0,)]
    await other.commits()
    await access.once(lambda db: raise_due_watermark(db, watermark))
    assert await other.does(_WATERMARK) == [(due - 90 * SECOND,)]
    assert (await store.jobs.admit(10)).jobs == 1


async def test_the_watermark_rises_to_a_little_before_now(store: Store, clock: ManualClock, other: Other) -> None:
    access, watermark = access_of(store), DueWatermark()
    id_ = await enqueue_one(store, delay=100 * SECOND)
    await access.once(lambda db: raise_due_watermark(db, watermark))
    await access.once(lambda db: raise_due_watermark(db, watermark))
    assert await other.does(_WATERMARK) == [(clock.wall() - 2 * SECOND,)]
    clock.advance(100 * SECOND)
    assert (await store.jobs.admit(10)).jobs == 1
    assert await status_of(store, id_) is Status.PENDING


async def test_a_job_below_the_watermark_in_spite_of_everything_is_found_within_a_minute(
    store: Store, clock: ManualClock, other: Other
) -> None:
    access, watermark = access_of(store), DueWatermark()
    id_ = await enqueue_one(store, delay=SECOND)
    await other.does("UPDATE windlass.due_watermark SET due = %s", clock.wall() + 3600 * SECOND)
    await other.commits()
    clock.advance(10 * SECOND)
    assert (await store.jobs.admit(10)).jobs == 0
    for _ in range(7):
        clock.advance(10 * SECOND)
        await access.once(lambda db: raise_due_watermark(db, watermark))
    assert (await store.jobs.admit(10)).jobs == 1
    assert await status_of(store, id_) is Status.PENDING


async def test_where_nothing_is_due_nothing_is_written(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store, delay=SECOND)

    async def look(db: Db) -> object:
        assert (await admit(db, 10)).jobs == 0
        return (await db.select("SELECT pg_current_xact_id_if_assigned()::text"))[0][0]

    assert await access_of(store).write(look) is None
    clock.advance(SECOND)
    assert (await store.jobs.admit(1)).next_due_in is None
