"""The store as a whole: opening, closing, views of it."""

from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, look, open_lease, put, running, status_of
from tests.support.stores import LASTING, STORES
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store


@pytest.mark.parametrize("kind", LASTING)
async def test_everything_is_there_after_closing_and_opening_again(
    kind: str, tmp_path: Path, clock: ManualClock
) -> None:
    first = STORES[kind].open(tmp_path, clock)
    ids = {status: await put(first, status) for status in Status}
    before = [await look(first, id_) for id_ in ids.values()]
    await first.close()
    second = STORES[kind].open(tmp_path, clock)
    assert [await look(second, id_) for id_ in ids.values()] == before
    await second.close()


async def test_closing_is_final_and_may_be_repeated(store: Store) -> None:
    await enqueue_one(store)
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable):
        await enqueue_one(store)


async def test_a_bounded_view_is_the_same_store(store: Store) -> None:
    view = store.with_timeout(30)
    job = await running(view)
    assert await status_of(store, job.id) is Status.RUNNING
    await open_lease(store, "r2")
    assert (await look(view, job.id)).worker == "r1"


async def test_migrating_again_applies_nothing(store: Store) -> None:
    await store.migrate()
    id_ = await enqueue_one(store)
    await store.migrate()
    assert await status_of(store, id_) is Status.PENDING
