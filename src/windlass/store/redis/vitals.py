"""What a server says of itself, and why it may not be trusted with jobs."""

from collections.abc import Mapping
from typing import Any

import msgspec

OLDEST = (6, 2)
NEAR = 0.9
"""Of the memory limit: from here on no new jobs are taken, and workers have the rest to finish what is there."""


class Vitals(msgspec.Struct, frozen=True):
    """Of one server."""

    version: tuple[int, ...]
    master: bool
    appendonly: bool
    policy: str
    """What is thrown away when memory is full."""
    used: int
    limit: int
    """Bytes of memory; 0: no limit."""

    @property
    def room(self) -> int | None:
        """Bytes until no new jobs are taken; None without a limit."""
        return int(self.limit * NEAR) - self.used if self.limit else None


def read_vitals(info: Mapping[str, Any] | bytes) -> Vitals:
    """From the answer to INFO, which a driver may have taken apart."""
    if isinstance(info, bytes):
        lines = info.decode(errors="replace").splitlines()
        info = dict(line.split(":", 1) for line in lines if ":" in line)
    version = tuple(int(part) for part in str(info["redis_version"]).split(".")[:3] if part.isdecimal())
    return Vitals(
        version,
        master=info["role"] == "master",
        appendonly=int(info["aof_enabled"]) == 1,
        policy=str(info["maxmemory_policy"]),
        used=int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0)),
        limit=int(info["maxmemory"]),
    )


def objection(vitals: Vitals, *, durable: bool) -> str | None:
    """Why no job may be kept there; None: nothing is wrong. `durable`: whether it must write to disk."""
    if vitals.version < OLDEST:
        return f"Redis {'.'.join(map(str, vitals.version))} is too old; Windlass needs 6.2 or later"
    if not vitals.master:
        return "this server is a replica; name the master, or use redis+sentinel:// or redis+cluster://"
    if vitals.policy != "noeviction":
        return (
            f"maxmemory-policy is {vitals.policy}: the server may throw jobs away when memory is full; "
            "say CONFIG SET maxmemory-policy noeviction, and write it into its configuration"
        )
    if durable and not vitals.appendonly:
        return (
            "appendonly is no: a restart of the server loses jobs; say CONFIG SET appendonly yes, and write it into "
            "its configuration, or accept the loss with ?durability=none"
        )
    return None
