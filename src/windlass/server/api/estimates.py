"""Estimates when a new job starts, for each queue and type at most once a second."""

from datetime import datetime, timedelta

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND, Micros
from windlass.errors import WindlassError
from windlass.server.shared_reads import SharedReads
from windlass.store.clock import since_boot

FRESH: Micros = SECOND
MAX_KNOWN = 1_000


class _Known(msgspec.Struct):
    at: Micros
    seconds: float | None
    """How long a job waits that was enqueued then; None: not known."""
    store_time: datetime


class Estimates:
    """The last estimates."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._known: dict[tuple[str, str], _Known] = {}
        self._reads: SharedReads[tuple[str, str], _Known | None] = SharedReads(FRESH)

    async def start_of(self, job: NewJob, id_: str) -> datetime | None:
        """The estimated start of a job that was just enqueued; None: not known."""
        if job.delay:
            read = await self._read(id_)
            return None if read is None else _start(read, read.at)
        pair, now = (job.queue, job.type), since_boot()
        known = self._known.get(pair)
        if known is None or now - known.at > FRESH:
            known = await self._reads.get(pair, lambda: self._refresh(pair, id_))
        return None if known is None else _start(known, now)

    async def stop(self) -> None:
        """Cancel the reads in progress."""
        await self._reads.stop()

    async def _refresh(self, pair: tuple[str, str], id_: str) -> _Known | None:
        read = await self._read(id_)
        if read is not None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[pair] = read
        return read

    async def _read(self, id_: str) -> _Known | None:
        now = since_boot()
        try:
            why = await self._app.jobs.awhy(id_)
        except WindlassError:
            return None  # the job is stored: the request has not failed
        start = why.estimated_start
        return _Known(now, None if start is None else (start - why.at).total_seconds(), why.at)


def _start(known: _Known, now: Micros) -> datetime | None:
    if known.seconds is None:
        return None
    return known.store_time + timedelta(microseconds=max(now - known.at, 0), seconds=known.seconds)
