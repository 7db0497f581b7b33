"""When a new job will start, estimated for each queue and type at most once a second."""

from datetime import datetime, timedelta

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND, Micros
from windlass.errors import WindlassError
from windlass.store.clock import since_boot

FRESH: Micros = SECOND
MAX_KNOWN = 1_000


class _Known(msgspec.Struct):
    at: Micros
    seconds: float | None
    """How long a job enqueued then has to wait; None: not known."""
    store_time: datetime


class Estimates:
    """The last estimates."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}

    async def start_of(self, app: App, job: NewJob, id_: str) -> datetime | None:
        """The estimated start of a job that was just enqueued; None: not known."""
        place, now = (job.queue, job.type), since_boot()
        known = self._known.get(place)
        if known is None or now - known.at > FRESH or job.delay:
            try:
                why = await app.jobs.awhy(id_)
            except WindlassError:
                return None  # it is stored; the estimate is only a service
            start = why.estimated_start
            if job.delay:
                return start
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            seconds = None if start is None else (start - why.at).total_seconds()
            known = self._known[place] = _Known(now, seconds, why.at)
        if known.seconds is None:
            return None
        return known.store_time + timedelta(microseconds=now - known.at, seconds=known.seconds)
