"""What a server says of itself, and why it may not be trusted with jobs."""

from collections.abc import Mapping
from typing import Any

import msgspec

MIN_VERSION = (6, 2)
MAX_MEMORY_SHARE = 0.9
"""Of the memory limit: from here on no new jobs are taken, and workers have the rest to finish what is there."""


class ServerInfo(msgspec.Struct, frozen=True):
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
        return int(self.limit * MAX_MEMORY_SHARE) - self.used if self.limit else None


def read_server_info(info: Mapping[str, Any] | bytes) -> ServerInfo:
    """From the answer to INFO, which a driver may have taken apart."""
    info = _fields(info)
    version = tuple(int(part) for part in str(info["redis_version"]).split(".")[:3] if part.isdecimal())
    return ServerInfo(
        version,
        master=info["role"] == "master",
        appendonly=int(info["aof_enabled"]) == 1,
        policy=str(info["maxmemory_policy"]),
        used=int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0)),
        limit=int(info["maxmemory"]),
    )


def is_loading(info: Mapping[str, Any] | bytes) -> bool:
    """Whether the server still reads its file after a start: what else it says of itself does not count yet."""
    return int(_fields(info).get("loading", 0)) == 1


def _fields(info: Mapping[str, Any] | bytes) -> Mapping[str, Any]:
    if not isinstance(info, bytes):
        return info
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def objection(info: ServerInfo, *, durable: bool) -> str | None:
    """Why no job may be kept there; None: nothing is wrong. `durable`: whether it must write to disk."""
    if info.version < MIN_VERSION:
        return f"Redis {'.'.join(map(str, info.version))} is too old; Windlass needs 6.2 or later"
    if not info.master:
        return "this server is a replica; name the master, or use redis+sentinel:// or redis+cluster://"
    if info.policy != "noeviction":
        return (
            f"maxmemory-policy is {info.policy}: the server may throw jobs away when memory is full; "
            "say CONFIG SET maxmemory-policy noeviction, and write it into its configuration"
        )
    if durable and not info.appendonly:
        return (
            "appendonly is no: a restart of the server loses jobs; say CONFIG SET appendonly yes, and write it into "
            "its configuration, or accept the loss with ?durability=none"
        )
    return None
