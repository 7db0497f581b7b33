"""The coordinator's leadership: one holder at a time, a growing term, the server's clock."""

import struct

from windlass.core.moments import Micros
from windlass.store.records import Campaign
from windlass.store.redis.connection.access import Access


async def campaign(access: Access, bid: Campaign) -> int | None:
    """Take the leadership if it is free, keep it if it is ours."""
    term: int = await access.call_global("campaign", (bid.candidate, bid.length))
    return term or None


async def resign(access: Access, candidate: str) -> None:
    """Give the leadership up, if it is ours."""
    await access.call_global("resign", (candidate,))


MAX_RUNNERS = 1000
_WORKER_AT = struct.calcsize(">qqB")
"""A lease is when it ends, its length, how many graces it had, and then its worker: see parts/pulse.lua."""


async def worker_of(access: Access, runner: str) -> str | None:
    """The worker of a runner that has a lease."""
    lease = await access.command("HGET", "leases", runner)
    return None if lease is None else lease[_WORKER_AT:].decode()


async def late_runners(access: Access, now: Micros) -> list[str]:
    """Runners whose leases are over, and dead ones with jobs that are not put back yet."""
    lapsed = await access.command("ZRANGEBYSCORE", "lease_ends", "-inf", now, "LIMIT", 0, MAX_RUNNERS)
    _, dead = await access.command("HSCAN", "dead_runners", 0, "COUNT", MAX_RUNNERS)
    return sorted({runner.decode() for runner in (*lapsed, *dead[::2])})


async def coordinator(access: Access, now: Micros) -> str | None:
    """The current coordinator."""
    holder, expires = await access.command("HMGET", "leadership", "holder", "expires")
    return holder.decode() if holder and int(expires or 0) > now else None
