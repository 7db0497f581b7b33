"""What the office tells those who only look: whose a runner is, who is late, who coordinates."""

import struct

from windlass.core.moments import Micros
from windlass.store.redis.access import Access

MOST_RUNNERS = 1000
_WORKER_AT = struct.calcsize(">qqB")
"""A lease is when it ends, its length, whether it had grace, and then its worker: see parts/pulse.lua."""


async def worker_of(access: Access, runner: str) -> str | None:
    """Whose runner it is, as long as it has a lease."""
    lease = await access.command("HGET", "leases", runner)
    return None if lease is None else lease[_WORKER_AT:].decode()


async def late_runners(access: Access, now: Micros) -> list[str]:
    """Those whose leases are over, and those who are gone and still hold something."""
    lapsed = await access.command("ZRANGEBYSCORE", "lapses", "-inf", now, "LIMIT", 0, MOST_RUNNERS)
    _, wrecks = await access.command("HSCAN", "wrecks", 0, "COUNT", MOST_RUNNERS)
    return sorted({runner.decode() for runner in (*lapsed, *wrecks[::2])})


async def office_holder(access: Access, now: Micros) -> str | None:
    """Who coordinates now."""
    holder, expires = await access.command("HMGET", "leader", "holder", "expires")
    return holder.decode() if holder and int(expires or 0) > now else None
