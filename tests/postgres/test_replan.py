"""Plans do not outlive what they were made for: one from an empty table is made anew when the table has filled."""

import pytest

from tests.postgres.test_watermarks import access_of
from windlass.store.contract import Store
from windlass.store.postgres.connection import session as sessions
from windlass.store.postgres.connection.session import Session

FILL = """
INSERT INTO windlass.jobs
    (id, queue, type, payload, status, sort_priority, rank, run_at, max_attempts, created_at, updated_at)
SELECT gen_random_uuid(), 'default', 't', '{}', 'pending', 0, n, n, 3, n, n FROM generate_series(1, 20000) AS n
"""
ASKED = "SELECT count(*) FROM windlass.jobs AS job JOIN unnest($1::uuid[]) AS wanted (id) ON job.id = wanted.id"


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
    monkeypatch.setattr(sessions, "REPLAN_EVERY", 0)
    filled = await plan(session)
    session.drop()
    assert "Index Cond: (id = wanted.id)" in filled.replace("job.", ""), filled
    assert filled != empty
