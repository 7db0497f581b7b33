"""The server: version, durability, and connections."""

import asyncio
import contextlib
import platform
import secrets
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from windlass.store.doctor import Finding, note, ok, problem, warning
from windlass.store.postgres.connection.access import CONNECT_SECONDS
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.session import Session
from windlass.version import __version__

OLDEST, NEWEST = 14, 18
"""Tested major versions."""
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
        says = "full_page_writes = off: a power cut may leave half-written pages, which no recovery mends"
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
            "this server is a standby: it can be read, and nothing can be handed in or run",
            "name the primary in the address, or all hosts with target_session_attrs=read-write",
        )
    elif settings["read_only"] == "on":
        yield problem(
            "role",
            "default_transaction_read_only is on for this user, database or server: nothing can be handed in or run",
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
            f"{says}: soon the server lets nobody in",
            "raise max_connections, put PgBouncer in between, or run fewer worker processes",
        )
    else:
        yield ok("connections", says)


PATIENCE_SECONDS = 3.0
FULL = 0.5


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
        yield note("wake-up", "?notify=off: idle workers look from time to time")
        return
    if await session.connection.fetchval("SELECT pg_is_in_recovery()"):
        yield note("wake-up", "a standby passes on no notifications")
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
            f"the server's queue of notifications is {used:.0%} full; when it is full, nothing can be handed in",
            "a session that listens has had a transaction open for too long: end it (see pg_stat_activity)",
        )


async def _arrives(address: Address, session: Session) -> bool:
    channel, heard = f"windlass_doctor_{secrets.token_hex(8)}", asyncio.Event()

    def hear(*_: Any) -> None:
        heard.set()

    listening = await connect(address.dsn, CONNECT_SECONDS, pooled=False)
    try:
        await listening.connection.add_listener(channel, hear)
        await session.connection.fetchval("SELECT pg_notify($1, 'heard?')", channel)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), PATIENCE_SECONDS)
        await listening.connection.remove_listener(channel, hear)
    finally:
        await listening.close()
    return heard.is_set()
