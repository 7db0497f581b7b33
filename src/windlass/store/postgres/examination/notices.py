"""Whether a notification arrives: then idle workers wake at once, else they look from time to time."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

from windlass.store.examination import Finding, note, ok, warning
from windlass.store.postgres.access import CONNECT_SECONDS
from windlass.store.postgres.address import Address
from windlass.store.postgres.session import Session, connect

PATIENCE_SECONDS = 3.0
FULL = 0.5


async def check_notices(address: Address, session: Session) -> AsyncIterator[Finding]:
    """Listen on a connection of its own, as a supervisor does, and tell it something."""
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
        listening.drop()
    return heard.is_set()
