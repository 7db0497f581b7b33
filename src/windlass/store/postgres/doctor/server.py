"""The server: version, durability, connections, notices, and what keeps dead rows."""

import asyncio
import contextlib
import platform
import secrets
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from windlass.core.moments import SECOND, Micros, show_duration
from windlass.store.doctor import Finding, note, ok, problem, warning
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.hints import NOT_ACCEPTED, why_no_hints
from windlass.store.postgres.connection.requirements import can_notify
from windlass.store.postgres.connection.server import CONNECT_SECONDS
from windlass.store.postgres.connection.session import Session
from windlass.version import __version__

OLDEST, NEWEST = 14, 18
"""Tested major versions."""
PATIENCE_SECONDS = 3.0
FULL = 0.5
HELD_BACK: Micros = 300 * SECOND
OLD_SNAPSHOT = 1_000_000
"""Transactions since the xmin of a replication slot, which has no clock."""
MANY_DEAD = 100_000
DEAD_FOR_EACH_LIVE = 5
CROWDED = 0.8


async def check_versions(db: Db) -> AsyncIterator[Finding]:
    """Whether this server's version is supported."""
    number = int((await db.rows("examine_settings"))[0]["server_version_num"])
    major = number // 10000
    running = (
        f"Windlass {__version__}, Python {platform.python_version()}, asyncpg {asyncpg.__version__}, "
        f"PostgreSQL {major}.{number % 10000}"
    )
    if major < OLDEST:
        yield problem(
            "versions", f"{running}: too old", f"Windlass needs PostgreSQL {OLDEST} or newer: upgrade the server"
        )
    elif major > NEWEST:
        advice = f"versions {OLDEST} to {NEWEST} are tested; look for a newer Windlass"
        yield warning("versions", f"{running}: newer than this Windlass knows", advice)
    else:
        yield ok("versions", running)


async def check_durability(db: Db) -> AsyncIterator[Finding]:
    """Whether the settings keep accepted jobs."""
    settings = (await db.rows("examine_settings"))[0]
    commit, fine = settings["synchronous_commit"], True
    for finding in _weaknesses(settings["fsync"], settings["full_page_writes"], commit):
        fine = False
        yield finding
    if settings["standbys"] and commit in ("local", "remote_write"):
        fine = False
        yield warning(
            "durability",
            f"synchronous_commit = {commit}: a job is accepted before the synchronous standby has it on its disk; "
            "if the standby takes over, the newest jobs may be missing",
            "set synchronous_commit = on for this user or database",
        )
    if fine:
        yield ok(
            "durability",
            f"an accepted job is flushed to the disk (synchronous_commit = {commit})",
        )


def _weaknesses(fsync: str, full_pages: str, commit: str) -> list[Finding]:
    found = []
    if fsync == "off":
        says = "fsync = off: a power cut or a crash of the machine may destroy the whole database, not just lose jobs"
        found.append(problem("durability", says, "set fsync = on and reload the server; make a new back-up"))
    if full_pages == "off":
        says = "full_page_writes = off: a power cut may leave half-written pages, which no recovery repairs"
        advice = "set full_page_writes = on, unless the file system itself never tears a page (ZFS)"
        found.append(warning("durability", says, advice))
    if commit == "off":
        says = (
            "synchronous_commit = off: a crash of the server may lose the jobs and outcomes of the last second, "
            "although they were accepted; nothing is damaged"
        )
        found.append(warning("durability", says, "set synchronous_commit = on for this user or database"))
    return found


async def check_role(db: Db) -> AsyncIterator[Finding]:
    """Whether this server accepts writes."""
    settings = (await db.rows("examine_settings"))[0]
    if settings["standby"]:
        yield problem(
            "role",
            "this server is a standby: it can be read, and no job can be enqueued or run",
            "name the primary in the address, or all hosts with target_session_attrs=read-write",
        )
    elif settings["read_only"] == "on":
        yield problem(
            "role",
            "default_transaction_read_only is on for this user, database or server: no job can be enqueued or run",
            "ALTER ROLE or ALTER DATABASE … SET default_transaction_read_only = off",
        )
    else:
        yield ok("role", "the server takes writes")


async def check_connections(db: Db) -> AsyncIterator[Finding]:
    """Connections in use, against the maximum."""
    used, ours, most = (await db.rows("examine_connections"))[0]
    says = f"{used} of {most} connections are in use, {ours} of them by Windlass"
    if used >= CROWDED * most:
        yield warning(
            "connections",
            f"{says}: soon the server refuses connections",
            "raise max_connections, put PgBouncer in between, or run fewer worker processes",
        )
    else:
        yield ok("connections", says)


async def check_notices(address: Address, session: Session) -> AsyncIterator[Finding]:
    """Listen on a second connection, as a supervisor does, and notify it."""
    if session.pooled:
        yield note(
            "pooler",
            "there is a pooler in between; Windlass leaves nothing on its connections (transaction mode will do)",
            "a direct address for the workers is faster: statements are prepared once, and notifications arrive",
        )
        yield note("wake-up", "no notification arrives through a pooler: idle workers look from time to time")
        return
    if not address.notify:
        yield note("wake-up", f"{why_no_hints(address)}: idle workers look from time to time")
        return
    if await session.connection.fetchval("SELECT pg_is_in_recovery()"):
        yield note("wake-up", "a standby passes on no notifications")
        return
    if address.profile.name and not await can_notify(session):
        yield warning(
            "wake-up",
            f"{NOT_ACCEPTED}: idle workers look from time to time",
            "set the flag ysql_yb_enable_listen_notify=true (v2025.2.3 or newer), or remove ?notify=on",
        )
        return
    if await _arrives(address, session):
        yield ok("wake-up", "a notification arrives (LISTEN and NOTIFY)")
    else:
        yield warning(
            "wake-up",
            f"a notification did not arrive within {PATIENCE_SECONDS:g} s: idle workers look from time to time",
            "something between here and the server swallows it: write ?notify=off, or name the server itself",
        )
    used = await session.connection.fetchval("SELECT pg_notification_queue_usage()")
    if used > FULL:
        yield warning(
            "wake-up",
            f"the server's queue of notifications is {used:.0%} full; when it is full, no job can be enqueued",
            "a session that listens has had a transaction open for too long: end it (see pg_stat_activity)",
        )


async def _arrives(address: Address, session: Session) -> bool:
    channel, heard = f"windlass_doctor_{secrets.token_hex(8)}", asyncio.Event()

    def on_notification(*_: Any) -> None:
        heard.set()

    listening = await connect(address.dsn, CONNECT_SECONDS, pooled=False)
    try:
        await listening.connection.add_listener(channel, on_notification)
        await session.connection.fetchval("SELECT pg_notify($1, 'heard?')", channel)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), PATIENCE_SECONDS)
        await listening.connection.remove_listener(channel, on_notification)
    finally:
        await listening.close()
    return heard.is_set()


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
            f"the replication slot {name!r} holds vacuum back: it keeps rows of {query} transactions ago",
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
                f"see what holds vacuum back; else VACUUM {db.schema}.{table}, and give autovacuum more workers",
            )
    if fine:
        yield ok("vacuum", f"{sum(row[2] for row in tables):,} dead rows in the tables that change with every job")
