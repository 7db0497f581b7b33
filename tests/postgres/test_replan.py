"""Plans do not outlive what they were made for: one from an empty table is made anew when the table has filled."""

import asyncio

import pytest

from tests.postgres.other import Other
from tests.postgres.test_watermarks import access_of
from tests.support.seed import enqueue_one
from windlass.core.moments import DAY
from windlass.errors import LeaseLost
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.postgres.connection import plans
from windlass.store.postgres.connection.db import Statement
from windlass.store.postgres.connection.session import Session
from windlass.store.records import ClaimRequest, QueueQuota

FILL = """
INSERT INTO windlass.jobs
    (id, queue, type, payload, status, sort_priority, rank, run_at, max_attempts, created_at, updated_at)
SELECT gen_random_uuid(), 'default', 't', '{}', 'pending', 0, n, n, 3, n, n FROM generate_series(1, 20000) AS n
"""
ASKED = "SELECT count(*) FROM windlass.jobs AS job JOIN unnest($1::uuid[]) AS wanted (id) ON job.id = wanted.id"

COUNT = Statement("INSERT INTO counted VALUES ($1)", ("number",))
READ = Statement("SELECT * FROM counted", ())


async def times_planned(session: Session) -> int:
    """How often the server has looked for a plan of COUNT."""
    rows = await session.connection.fetch(
        "SELECT generic_plans FROM pg_prepared_statements WHERE statement = $1", COUNT.text
    )
    return int(rows[0][0])


async def plan(session: Session) -> str:
    """Of the statement as the driver has prepared it on this connection, when a call of ours comes."""
    await session.replan()
    await session.connection.fetch(ASKED, [])
    ((name,),) = await session.connection.fetch("SELECT name FROM pg_prepared_statements WHERE statement = $1", ASKED)
    rows = await session.connection.fetch(f"EXPLAIN EXECUTE {name} ('{{}}')")
    return "\n".join(row[0] for row in rows)


async def test_a_plan_is_made_anew_after_a_while(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.operator.counts()
    session = await access_of(store).server.pool().take()
    await session.script("VACUUM ANALYZE windlass.jobs")
    empty = await plan(session)
    await session.script(FILL)
    assert await plan(session) == empty, "nothing has told the planner, and not enough time has passed"
    monkeypatch.setattr(plans, "REPLAN_EVERY", 0)
    filled = await plan(session)
    session.drop()
    assert "Index Cond: (id = wanted.id)" in filled.replace("job.", ""), filled
    assert filled != empty


async def test_recent_statements_are_planned_but_not_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.operator.counts()
    session = await access_of(store).server.pool().take()
    await session.script("CREATE TEMP TABLE counted (number integer)")
    await session.run(COUNT, {"number": 1})
    monkeypatch.setattr(plans, "REPLAN_EVERY", 0)
    before = await times_planned(session)
    await session.replan()
    assert await times_planned(session) == before + 1
    await session.replan()
    assert await times_planned(session) == before + 1, "it was not used since"
    assert len(await session.rows(READ, {})) == 1
    session.drop()


async def test_an_urgent_call_leaves_plans_to_others_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.operator.counts()
    session = await access_of(store).server.pool().take()
    await session.script("CREATE TEMP TABLE counted (number integer)")
    moment = since_boot()
    monkeypatch.setattr(plans, "since_boot", lambda: moment)
    await session.run(COUNT, {"number": 1})
    sent: list[str] = []
    session.connection.add_query_logger(lambda query: sent.append(query.query))
    moment += plans.REPLAN_EVERY
    await session.replan(urgent=True)
    await asyncio.sleep(0)  # the driver reports in the next iteration of the loop
    assert sent == []
    moment += plans.REPLAN_EVERY
    await session.replan(urgent=True)
    await asyncio.sleep(0)
    assert sent == ["DISCARD PLANS"], "it makes none anew: the job waits"
    session.drop()


async def test_a_statement_that_a_migration_has_outdated_does_not_break_the_connection(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.operator.counts()
    session = await access_of(store).server.pool().take()
    await session.script("CREATE TEMP TABLE counted (number integer)")
    await session.rows(READ, {})
    await session.script("ALTER TABLE counted ADD COLUMN other integer")
    monkeypatch.setattr(plans, "REPLAN_EVERY", 0)
    await session.replan()
    assert await session.rows(READ, {}) == []
    session.drop()


async def test_a_lock_on_the_table_of_another_call_does_not_delay_a_call(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue_one(store)
    monkeypatch.setattr(plans, "REPLAN_EVERY", DAY)
    await store.schedules.list()
    monkeypatch.setattr(plans, "REPLAN_EVERY", 0)
    await other.does("LOCK windlass.schedules IN ACCESS EXCLUSIVE MODE")
    async with asyncio.timeout(10):
        await enqueue_one(store)
    assert sum((await store.operator.counts()).totals.values()) == 2
    await other.commits()


async def test_claims_are_urgent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []

    async def renew(self: plans.Plans, *, urgent: bool) -> None:
        calls.append(urgent)

    monkeypatch.setattr(plans.Plans, "renew", renew)
    request = ClaimRequest(runner="r", claim=1, quotas=(QueueQuota("default", 1, 0),), types=("t",), limit=1)
    with pytest.raises(LeaseLost):
        await store.jobs.claim(request)
    assert set(calls) == {True}
    calls.clear()
    await store.operator.counts()
    assert set(calls) == {False}
