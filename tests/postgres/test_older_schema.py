"""A database of the version before schedules: its jobs stay, run on, and those of ticks come beside them."""

import psycopg
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, look, open_lease
from tests.support.timing import MINUTE, add, fire, ticks_of
from windlass.core.ids import new_id
from windlass.core.status import Status
from windlass.store.open import open_store
from windlass.store.postgres import migrate
from windlass.store.postgres.migrate import migrations

SEED = """
INSERT INTO windlass.queues (name, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead)
    VALUES ('default', 3, 0, 86400000000, 86400000000, 86400000000);
INSERT INTO windlass.floors (queue, urgency) VALUES ('default', 0);
INSERT INTO windlass.jobs
    (id, queue, type, payload, status, urgency, rank, run_at, max_attempts, created_at, updated_at)
    VALUES ('{live}', 'default', 't', '{{}}', 'pending', 0, 1, 1, 3, 1, 1);
INSERT INTO windlass.history (
    id, shelf, queue, type, payload, status, urgency, run_at, attempt, max_attempts, failures, crashes, rescues,
    suspicions, hand_backs, snoozes, created_at, updated_at, finished_at, drop_at, timeout, cancel_requested
) VALUES (
    '{over}', 0, 'default', 't', '{{}}', 'completed', 0, 1, 1, 3, 0, 0, 0, 0, 0, 0, 1, 1, {now}, {now}, 0, false
);
"""


async def test_jobs_of_the_version_before_schedules_are_of_none_and_go_on(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, live, over = [each for each in migrations() if each.number < 4], new_id(), new_id()
    with monkeypatch.context() as old:
        old.setattr(migrate, "migrations", lambda: before)
        store = open_store(postgres_url, clock=clock)
        assert await store.migrate() == [each.name for each in before]
        await store.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SEED.format(live=live, over=over, now=clock.wall()).encode())
    store = open_store(postgres_url, clock=clock)
    assert await store.migrate() == [each.name for each in migrations()[len(before) :]]
    assert [(job.schedule, job.tick) for job in (await look(store, live), await look(store, over))] == [
        (None, None)
    ] * 2
    await add(store)
    clock.advance(MINUTE)
    await fire(store)
    await open_lease(store)
    assert live in await claim_ids(store)
    assert await ticks_of(store) == [clock.wall()]
    assert [moved and moved.done for moved in await store.operator.retry([over])] == [True]
    assert (await look(store, over)).status is Status.PENDING
    await store.close()
