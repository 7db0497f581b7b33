"""Waiting for a key: statements go by index, and their steps do not grow with the number of waiting jobs."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.sqlite.conftest import Open
from tests.sqlite.test_plans import SORT, TABLES, plan, statement
from tests.support.key_queues import enqueue_with_key, take
from tests.support.seed import completed, enqueue_one, new_job, open_lease, request
from windlass.core.flow.rate import Rate
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.limits.limits import ClaimMemory
from windlass.store.sqlite.store import SqliteStore
from windlass.store.sqlite.verbs.claim import claim
from windlass.store.sqlite.verbs.enqueue import enqueue
from windlass.store.sqlite.verbs.settle import settle

BLOCKED, KEYS = 100_000, 1_000


async def fill_key_queues(store: SqliteStore, blocked: int = BLOCKED, keys: int = KEYS) -> None:
    """Each key has a holder and waiting jobs; with statistics, so that plans are those of a store in use."""

    def work(db: Db) -> None:
        db.select(
            "WITH RECURSIVE n (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n LIMIT :jobs) "
            "INSERT INTO windlass_jobs (id, queue, type, payload, status, reason, sort_priority, rank, run_at, "
            "max_attempts, created_at, updated_at, concurrency_key, key_slot) "
            "SELECT format('%08x', value), 'default', 'waiting', '{}', iif(value < :keys, 'running', 'blocked'), "
            "iif(value < :keys, NULL, 'waits for its concurrency key'), 0, value, value, 3, 0, 0, "
            "'key' || (value % :keys), iif(value < :keys, 0, NULL) FROM n",
            {"jobs": blocked + keys, "keys": keys},
        )
        db.select("ANALYZE")

    await store._threads.write(work, None)


async def steps(store: SqliteStore, verb: Callable[[Db], Any]) -> int:
    """How many steps the engine takes for a verb, as it counts them."""

    def work(db: Db) -> int:
        library: Any = db._connection
        library = getattr(library, "_apsw", None) or library._sqlite3
        taken = 0

        def count() -> bool:
            nonlocal taken
            taken += 1
            return False

        library.set_progress_handler(count, 1)
        try:
            verb(db)
        finally:
            library.set_progress_handler(None, 1)
        return taken

    return await store._threads.write(work, None)


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "with statistics"])
@pytest.mark.parametrize("name", ["key_queue_heads", "key_use"])
async def test_a_look_at_keys_goes_by_their_two_indexes_and_sorts_nothing(
    opens: Open, name: str, filled: bool
) -> None:
    store = opens()
    if filled:
        await fill_key_queues(store, 2000, 20)
    found = await plan(store, *statement(name))
    for index in ("windlass_jobs_waiting_for_key", "windlass_jobs_key_slot"):
        assert any(f"{index} (queue=? AND concurrency_key=?" in step for step in found), found
    assert not [step for step in found if SORT in step or step.startswith(TABLES)], found


async def test_a_hundred_thousand_that_wait_for_keys_do_not_slow_the_claim_of_another_job(opens: Open) -> None:
    store = opens()
    await open_lease(store)

    async def claiming() -> int:
        await enqueue_one(store)
        return await steps(store, lambda db: claim(db, request(), ClaimMemory(db.clock)))

    before = await claiming()
    await fill_key_queues(store)
    assert await claiming() <= before * 1.1


async def test_nor_the_enqueue_of_another_job_with_or_without_a_key(opens: Open) -> None:
    store = opens()

    async def enqueueing(key: str | None) -> int:
        return await steps(store, lambda db: enqueue(db, [new_job(concurrency_key=key)]))

    await enqueueing(None)  # makes the queue
    before = [await enqueueing(None), await enqueueing("before")]
    await fill_key_queues(store)
    await enqueueing("first")  # new statistics: statements are prepared again
    after = [await enqueueing(None), await enqueueing("after")]
    # One more: whether a job has an id as high as the new one is answered by the first of many, not by none.
    assert [later <= earlier + 10 for earlier, later in zip(before, after, strict=True)] == [True, True]


@pytest.mark.parametrize("limit", [1, 3])
async def test_freeing_a_slot_takes_as_many_steps_however_many_wait(opens: Open, limit: int) -> None:
    store = opens()

    async def settling(behind: int) -> int:
        await enqueue_with_key(store, limit + behind, f"{behind} behind", key_limit=limit)
        job = (await take(store, f"r{behind}"))[0]
        return await steps(store, lambda db: settle(db, [completed(job)]))

    assert await settling(2000) <= await settling(20) * 1.1


async def rated(store: SqliteStore) -> list[str]:
    rows = await store._threads.write(lambda db: db.select("SELECT name FROM windlass_queues WHERE rated = 1"), None)
    return [name for (name,) in rows]


async def test_a_queue_is_rated_from_the_moment_a_job_whose_key_has_a_rate_may_run(opens: Open) -> None:
    store = opens()
    await enqueue_one(store)
    await enqueue_with_key(store, 1, "held")
    await enqueue_with_key(store, 1, "held", key_rate=Rate(1, 1_000_000, 1))
    assert await rated(store) == [], "it waits for its key"
    await enqueue_with_key(store, 1, "free", queue="other", key_rate=Rate(1, 1_000_000, 1))
    assert await rated(store) == ["other"]
    await store.jobs.settle([completed(job) for job in await take(store)])
    assert await rated(store) == ["default", "other"]
