"""Checks of the server itself: version, durability, memory, role, connections."""

import platform
from collections.abc import Iterator
from importlib.metadata import version as version_of

from windlass.store.doctor import Finding, note, ok, problem, size, warning
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.server_watch import MAX_MEMORY_SHARE, MIN_VERSION
from windlass.version import __version__

FIXED_IN = {
    "Redis": {(6, 2): 20, (7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
    "Valkey": {(7, 2): 11, (8, 0): 6, (8, 1): 4},
}
"""The first release of each series in which CVE-2025-49844 is fixed: a user that may run scripts could take over the
server, and every user of Windlass may."""
MANY_CONNECTIONS = 0.8
MUCH_MEMORY = 0.8
SETTINGS = ("appendfsync", "maxclients")
"""Settings that INFO lacks in some or all versions."""

Info = dict[str, str]
"""The server's INFO, with those of SETTINGS that this user may read."""


def check_versions(info: Info, address: Address) -> Iterator[Finding]:
    """Whether Windlass works with this server, and whether it has a known vulnerability to scripts."""
    name, version = _version(info)
    series, patch, shown = version[:2], version[2], f"{name} {'.'.join(map(str, version))}"
    driver = version_of("redis")
    running = f"Windlass {__version__}, Python {platform.python_version()}, redis-py {driver}, {shown}"
    if series < MIN_VERSION:
        yield problem("versions", f"{running}: too old", "Windlass needs Redis 6.2 or newer: upgrade the server")
        return
    fixed = FIXED_IN[name]
    if series in fixed and patch < fixed[series]:
        yield warning(
            "versions",
            f"{running}, which has CVE-2025-49844: a user that may run scripts can take over the server",
            f"upgrade to {series[0]}.{series[1]}.{fixed[series]} or newer, unless its packager has fixed that",
        )
    elif series not in fixed and series < max(fixed):
        yield note(
            "versions",
            f"{running}; of the series {series[0]}.{series[1]} there are no more releases, only packagers fix it",
            "keep the package up to date, or upgrade the server",
        )
    else:
        yield ok("versions", running)


def _version(info: Info) -> tuple[str, tuple[int, ...]]:
    name = "Valkey" if info.get("valkey_version") else "Redis"
    text = info.get("valkey_version") or info["redis_version"]
    numbers = [int(each) if each.isdigit() else 0 for each in text.split(".")]
    return name, tuple((*numbers, 0, 0, 0)[:3])


def check_durability(info: Info, address: Address) -> Iterator[Finding]:
    """Whether an accepted job survives a crash, by the server's settings."""
    if info.get("aof_enabled") != "1":
        says = "appendonly no: an accepted job is in memory only, and a restart loses all since the last snapshot"
        if address.durable:
            yield problem("durability", says, "set appendonly yes; or add ?durability=none, if jobs may be lost")
        else:
            yield warning("durability", f"{says} (?durability=none accepts that)", "set appendonly yes")
    elif info.get("aof_last_write_status") == "err":
        says = "the last write to the append-only file failed: nothing can be enqueued or run"
        yield problem("durability", says, "is its disk full? See the server's log")
    else:
        yield _flushing(info.get("appendfsync"))


def _flushing(policy: str | None) -> Finding:
    if policy == "always":
        return ok("durability", "an accepted job is flushed to the disk (appendfsync always)")
    if policy == "everysec":
        says = "a crash of the machine may lose the accepted jobs of the last second or two (appendfsync everysec)"
        return note("durability", says, "to prevent that, set appendfsync always: each call then waits for the disk")
    if policy == "no":
        says = "a crash of the machine may lose the accepted jobs of the last half minute (appendfsync no)"
        return warning("durability", says, "set appendfsync everysec or always")
    return note("durability", "appendonly yes; this user may not read how often it is flushed (CONFIG GET)")


def check_memory(info: Info, address: Address) -> Iterator[Finding]:
    """Whether the server would evict jobs, and how much memory is free."""
    used, most, policy = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0)), info.get("maxmemory_policy")
    if policy not in (None, "noeviction"):
        yield problem(
            "memory",
            f"maxmemory-policy {policy}: when memory is short the server evicts keys, and jobs with them",
            "set maxmemory-policy noeviction; a cache belongs on a server of its own",
        )
    elif not most:
        machine = int(info.get("total_system_memory", 0))
        room = f" of {size(machine)}" if machine else ""
        yield note(
            "memory",
            f"{size(used)}{room} used, and no maxmemory: the system may kill the server when memory runs out",
            "set maxmemory: then enqueues are refused in time, and workers continue",
        )
    elif used >= MAX_MEMORY_SHARE * most:
        yield problem(
            "memory",
            f"{size(used)} of {size(most)} used: nothing more can be enqueued; workers continue",
            "raise maxmemory, keep finished jobs for a shorter time (retention), or run more workers",
        )
    elif used >= MUCH_MEMORY * most:
        yield warning(
            "memory",
            f"{size(used)} of {size(most)} used: soon nothing more can be enqueued",
            "raise maxmemory, keep finished jobs for a shorter time (retention), or run more workers",
        )
    else:
        yield ok("memory", f"{size(used)} of {size(most)} used")


def check_role(info: Info, address: Address) -> Iterator[Finding]:
    """Whether this server takes writes from us, and has as many replicas as were asked for."""
    replicas = int(info.get("connected_slaves", 0))
    if info.get("role") == "slave":
        yield problem(
            "role",
            f"this server is a replica of {info.get('master_host')}: nothing can be enqueued or run",
            "name the master in the address, or the Sentinels that know it",
        )
    elif replicas < address.replicas:
        yield problem(
            "role",
            f"{replicas} replicas, and ?replicas={address.replicas} must have every change: each call fails",
            "start the replicas that are missing, or ask for fewer",
        )
    else:
        yield ok("role", f"the server takes writes, and has {replicas or 'no'} replica{'' if replicas == 1 else 's'}")


def check_connections(info: Info, address: Address) -> Iterator[Finding]:
    """How many connections there are, ours and others', against how many there may be."""
    used, most = int(info.get("connected_clients", 0)), int(info.get("maxclients") or 0)
    if most and used >= MANY_CONNECTIONS * most:
        yield warning(
            "connections",
            f"{used} of {most} connections are in use: soon the server refuses new ones",
            "raise maxclients, or run fewer worker processes",
        )
    else:
        yield ok("connections", f"{used}{f' of {most}' if most else ''} connections are in use")
