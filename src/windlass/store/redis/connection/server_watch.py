"""The watch over the servers: they are looked at when a store is opened and every few seconds, not at each call."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from windlass.errors import SchemaMismatch, StoreUnavailable
from windlass.store.redis.connection.address import Address, Kind
from windlass.store.redis.connection.server_info import objection, read_server_info

INTERVAL = 10.0
SHORT_INTERVAL = 1.0
"""Seconds between looks; while something is wrong, and after a server was lost."""
ROOM_PARTS = 8
"""The servers are inspected early after this process has used 1/8 of the free memory."""


class ServerWatch:
    """What the last look has shown."""

    def __init__(self, address: Address, shown: str) -> None:
        self._address = address
        self._shown = shown
        self._due = 0.0
        self._looked = False
        self._refusal: StoreUnavailable | None = None
        self._room: int | None = None
        """Bytes that may still be enqueued; None: no limit."""
        self._left = 0
        """Bytes until it is looked again."""
        self._remark: str | None = None

    def is_due(self) -> bool:
        """True for one caller at a time: others go on with what was seen last, but for the first time."""
        now = time.monotonic()
        if now < self._due:
            return False
        if self._looked:
            self._due = now + SHORT_INTERVAL
        return True

    def see(self, infos: Sequence[Any], refusal: StoreUnavailable | None) -> None:
        """The answers of all servers to INFO, and what is wrong with the store itself. The silent are not judged."""
        vitals = [read_server_info(info) for info in infos if not isinstance(info, Exception)]
        wrong = [each for each in (objection(v, durable=self._address.durable) for v in vitals) if each]
        # Behind Sentinels and in a cluster another may be master in a moment.
        lasting = self._address.kind is Kind.SERVER
        self._refusal = refusal or (
            StoreUnavailable(f"{self._shown}: {wrong[0]}", lasting=lasting) if wrong else None
        )
        rooms = [v.room for v in vitals if v.room is not None]
        self._room = min(rooms, default=None)
        self._left = 0 if self._room is None else self._room // ROOM_PARTS
        self._looked = True
        self._due = time.monotonic() + (INTERVAL if self._refusal is None and not self._is_full() else SHORT_INTERVAL)

    def check_soon(self) -> None:
        """Something has happened to a server: look before long."""
        self._due = min(self._due, time.monotonic() + SHORT_INTERVAL)

    def check_now(self) -> None:
        """A script stopped half-way: look at the rights before anything else is asked."""
        self._due = 0.0

    def remark(self, remark: str | None) -> None:
        """Something is not as it should be, and can be done without: that is logged once."""
        if remark is not None and remark != self._remark:
            logging.getLogger("windlass").warning("%s: %s", self._shown, remark)
        self._remark = remark

    def check(self) -> None:
        """Before every call: is there a reason to keep away?"""
        if self._refusal is not None:
            raise _fresh(self._refusal)

    def check_room(self, size: int) -> None:
        """Raise if an enqueue of this many bytes does not fit."""
        if self._room is None:
            return
        if self._is_full():
            raise StoreUnavailable(
                f"{self._shown}: takes no new jobs, for the server's memory is nearly full (workers go on); "
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
        "gone; restart this process to begin anew",
        lasting=True,
    )


def queues_lost(shown: str, queues: Sequence[str]) -> StoreUnavailable:
    """Queues of a live store are missing. The next call creates them again."""
    return StoreUnavailable(
        f"{shown}: the queues {', '.join(queues)} were here and are gone, with all of their jobs: was their server "
        "emptied, or did a replica take over that had not heard of them?"
    )


def too_new(shown: str, found: int, known: int) -> SchemaMismatch:
    """Another process has brought the keys to a version that this one cannot read."""
    return SchemaMismatch(f"{shown}: its key map is version {found}, this Windlass knows up to {known}; upgrade it")


def _fresh(error: StoreUnavailable) -> StoreUnavailable:
    """Raised many times: each has a traceback of its own."""
    return type(error)(str(error), maybe_done=error.maybe_done, lasting=error.lasting)
