"""A database of an older version: its jobs stay and run after a later step, here a made-up one."""

import psycopg
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, enqueue_one, look, open_lease
from windlass.core.status import Status
from windlass.store.migrations import Migration
from windlass.store.open import open_store
from windlass.store.postgres import migrate
from windlass.store.postgres.migrate import migrations

LATER = Migration(2, "0002_later", "ALTER TABLE windlass.jobs ADD COLUMN colour text DEFAULT 'blue'", True)


async def test_jobs_from_before_a_step_stay_and_run_after_it(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres_url, clock=clock)
    assert await store.migrate() == [each.name for each in migrations()]
    live, over = await enqueue_one(store), await enqueue_one(store)
    await store.operator.cancel([over], "no longer needed")
    await store.close()
    steps = [*migrations(), LATER]
    monkeypatch.setattr(migrate, "migrations", lambda *_: steps)
    store = open_store(postgres_url, clock=clock)
    assert await store.migrate() == [LATER.name]
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT id::text, colour FROM windlass.jobs").fetchall() == [(live, "blue")]
    await open_lease(store)
    assert await claim_ids(store) == [live]
    assert [moved and moved.done for moved in await store.operator.retry([over])] == [True]
    assert (await look(store, over)).status is Status.PENDING
    await store.close()
