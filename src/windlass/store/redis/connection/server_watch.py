"""Periodic checks of the servers: when a store is opened and every few seconds, not at each call."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.errors import SchemaMismatch, StoreUnavailable
from windlass.store.redis.connection.address import Address, Kind

MIN_VERSION = (6, 2)
MAX_MEMORY_SHARE = 0.9
"""Share of maxmemory from which on enqueues are refused; workers have the rest to finish jobs."""


class ServerInfo(msgspec.Struct, frozen=True):
    """The state of one server, from INFO."""

    version: tuple[int, ...]
    master: bool
    appendonly: bool
    policy: str
    """Which keys are evicted when memory is full."""
    used: int
    limit: int
    """Bytes of memory; 0: no limit."""

    @property
    def room(self) -> int | None:
        """Bytes until no new jobs are taken; None without a limit."""
        return int(self.limit * MAX_MEMORY_SHARE) - self.used if self.limit else None


def read_server_info(info: Mapping[str, Any] | bytes) -> ServerInfo:
    """The state from a reply to INFO, which the driver may have parsed."""
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
    """Whether the server is still loading its file: other fields of INFO are not valid yet."""
    return int(_fields(info).get("loading", 0)) == 1


def _fields(info: Mapping[str, Any] | bytes) -> Mapping[str, Any]:
    if not isinstance(info, bytes):
        return info
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def why_refused(info: ServerInfo, *, durable: bool) -> str | None:
    """Why no job may be stored there; None: nothing is wrong. `durable`: whether it must write to disk."""
    if info.version < MIN_VERSION:
        return f"Redis {'.'.join(map(str, info.version))} is too old; Windlass needs 6.2 or later"
    if not info.master:
        return "this server is a replica; name the master, or use redis+sentinel:// or redis+cluster://"
    if info.policy != "noeviction":
        return (
            f"maxmemory-policy is {info.policy}: the server may evict jobs when memory is full; "
            "run CONFIG SET maxmemory-policy noeviction, and write it into its configuration"
        )
    if durable and not info.appendonly:
        return (
            "appendonly is no: a restart of the server loses jobs; run CONFIG SET appendonly yes, and write it into "
            "its configuration, or accept the loss with ?durability=none"
        )
    return None


INTERVAL = 10.0
SHORT_INTERVAL = 1.0
"""Seconds between checks; the short one while something is wrong, and after a server was lost."""
ROOM_PARTS = 8
"""The servers are inspected early after this process has used 1/8 of the free memory."""


class ServerWatch:
    """The result of the last check."""

    def __init__(self, address: Address, shown: str) -> None:
        self._address = address
        self._shown = shown
        self._due = 0.0
        self._checked = False
        self._refusal: StoreUnavailable | None = None
        self._room: int | None = None
        """Bytes that may still be enqueued; None: no limit."""
        self._left = 0
        """Bytes until the next check."""
        self._warned: str | None = None

    def is_due(self) -> bool:
        """True for one caller at a time; the others use the last result. Before the first check, true for all."""
        now = time.monotonic()
        if now < self._due:
            return False
        if self._checked:
            self._due = now + SHORT_INTERVAL
        return True

    def update(self, infos: Sequence[Any], refusal: StoreUnavailable | None) -> None:
        """Check the replies of all servers to INFO; store why calls are refused, if they are."""
        servers = [read_server_info(info) for info in infos if not isinstance(info, Exception)]
        wrong = [each for each in (why_refused(v, durable=self._address.durable) for v in servers) if each]
        # Behind Sentinels and in a cluster a failover may replace the server.
        lasting = self._address.kind is Kind.SERVER
        self._refusal = refusal or (
            StoreUnavailable(f"{self._shown}: {wrong[0]}", lasting=lasting) if wrong else None
        )
        rooms = [v.room for v in servers if v.room is not None]
        self._room = min(rooms, default=None)
        self._left = 0 if self._room is None else self._room // ROOM_PARTS
        self._checked = True
        self._due = time.monotonic() + (INTERVAL if self._refusal is None and not self._is_full() else SHORT_INTERVAL)

    def check_soon(self) -> None:
        """Check within SHORT_INTERVAL, after a server was lost or failed."""
        self._due = min(self._due, time.monotonic() + SHORT_INTERVAL)

    def check_now(self) -> None:
        """Check before the next call, after a script was stopped half-way."""
        self._due = 0.0

    def log_once(self, warning: str | None) -> None:
        """Log a missing right that is not required, once."""
        if warning is not None and warning != self._warned:
            logging.getLogger("windlass").warning("%s: %s", self._shown, warning)
        self._warned = warning

    def check(self) -> None:
        """Before every call: raise if the last check refused the store."""
        if self._refusal is not None:
            raise _fresh(self._refusal)

    @property
    def has_limit(self) -> bool:
        """Whether the server's memory is limited."""
        return self._room is not None

    def check_room(self, size: int) -> None:
        """Raise if an enqueue of this many bytes does not fit."""
        if self._room is None:
            return
        if self._is_full():
            raise StoreUnavailable(
                f"{self._shown}: no new jobs are taken, as the server's memory is nearly full (workers continue); "
                "raise maxmemory, or keep finished jobs for a shorter time",
                lasting=True,
            )
        self._left -= size
        if self._left < 0:
            self._due = 0.0

    def _is_full(self) -> bool:
        return self._room is not None and self._room <= 0


def emptied(shown: str) -> StoreUnavailable:
    """The store that this process knows was emptied or replaced."""
    return StoreUnavailable(
        f"{shown}: this is not the store that was here: it was emptied (FLUSHALL?) or replaced, and its jobs are "
        "gone; restart this process to start over",
        lasting=True,
    )


def queues_lost(shown: str, queues: Sequence[str]) -> StoreUnavailable:
    """Queues of a store that still exists are missing. The next call creates them again."""
    return StoreUnavailable(
        f"{shown}: the queues {', '.join(queues)} were here and are gone, with all of their jobs: was their server "
        "emptied, or did a replica without them take over?"
    )


def too_new(shown: str, found: int, known: int) -> SchemaMismatch:
    """Another process has brought the keys to a version that this one cannot read."""
    return SchemaMismatch(
        f"{shown}: its key map is version {found}, this Windlass knows up to {known}; upgrade Windlass"
    )


def _fresh(error: StoreUnavailable) -> StoreUnavailable:
    """A copy, so that each raise has its own traceback."""
    return type(error)(str(error), maybe_done=error.maybe_done, lasting=error.lasting)
