"""What holds vacuum back, and how many dead rows there are."""

from collections.abc import AsyncIterator

from windlass.core.moments import SECOND, Micros, show_duration
from windlass.store.doctor import Finding, note, ok, warning
from windlass.store.postgres.connection.db import Db

HELD_BACK: Micros = 300 * SECOND
OLD_SNAPSHOT = 1_000_000
"""Transactions since the xmin of a replication slot, which has no clock."""
MANY_DEAD = 100_000
DEAD_FOR_EACH_LIVE = 5


async def check_snapshots(db: Db, limit: Micros = HELD_BACK) -> AsyncIterator[Finding]:
    """Old snapshots hold back vacuum: dead rows pile up, and claims get slow."""
    fine = True
    for kind, name, age, query in await db.rows("examine_snapshots", {"limit": limit, "old": OLD_SNAPSHOT}):
        fine = False
        yield _holder(kind, name, age, query)
    user, sees = (await db.rows("examine_insight"))[0]
    if not sees:
        advice = f"to see them: GRANT pg_read_all_stats TO {user}"
        yield note(
            "vacuum", "transactions of other users are hidden from this one: one of them may hold vacuum back", advice
        )
    elif fine:
        yield ok("vacuum", f"nothing older than {show_duration(limit)} holds it back")


def _holder(kind: str, name: str, age: Micros | None, query: str | None) -> Finding:
    if kind == "slot":
        return warning(
            "vacuum",
            f"the replication slot {name!r} holds vacuum back: it keeps what {query} transactions ago was there",
            f"let its standby catch up, or drop it: SELECT pg_drop_replication_slot('{name}')",
        )
    since = f"for {show_duration(age or 0)}"
    if kind == "prepared":
        return warning(
            "vacuum",
            f"the prepared transaction {name!r} holds vacuum back {since}",
            f"finish it: COMMIT PREPARED '{name}' or ROLLBACK PREPARED '{name}'",
        )
    pid = name.partition(" ")[0]
    return warning(
        "vacuum",
        f"process {name} has had a transaction open {since} and holds vacuum back; its last statement: {query}",
        f"end it, or SELECT pg_terminate_backend({pid}); idle_in_transaction_session_timeout ends such by itself",
    )


async def check_dead_rows(db: Db) -> AsyncIterator[Finding]:
    """Dead rows in the tables that change with every job."""
    enabled = (await db.rows("examine_autovacuum"))[0][0]
    if not enabled:
        yield warning(
            "vacuum",
            "autovacuum does not run (autovacuum or track_counts is off): every job leaves dead rows that stay",
            "set autovacuum = on and track_counts = on, and reload the server",
        )
    fine = True
    tables = await db.rows("examine_dead_rows", {"schema": db.schema})
    for table, live, dead, cleaned in tables:
        if dead >= MANY_DEAD and dead > DEAD_FOR_EACH_LIVE * live:
            fine = False
            when = "never cleaned yet" if cleaned is None else f"last cleaned {show_duration(cleaned)} ago"
            yield warning(
                "vacuum",
                f"{db.schema}.{table} has {dead:,} dead rows beside {live:,} live ones, {when}",
                f"see who holds vacuum back; else VACUUM {db.schema}.{table}, and give autovacuum more workers",
            )
    if fine:
        yield ok("vacuum", f"{sum(row[2] for row in tables):,} dead rows in the tables that change with every job")
