"""The server as such: its version, what it does with what it promised to keep, and whether there is room for us."""

import platform
from collections.abc import AsyncIterator

import asyncpg

from windlass.store.examination import Finding, ok, problem, warning
from windlass.store.postgres.db import Db
from windlass.version import __version__

OLDEST, NEWEST = 14, 18
"""Major versions that every release is tested with."""
CROWDED = 0.8


async def check_versions(db: Db) -> AsyncIterator[Finding]:
    """Whether Windlass works with this server."""
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
    """What the server does with an accepted job, as far as its settings tell."""
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
    """Whether this server takes writes from us."""
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
    """How many connections there are, ours and others', against how many there may be."""
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
