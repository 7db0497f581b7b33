"""Reads events from the store: ends of jobs from the history, changes of settings by comparing versions.

Ends are read by keyset, and the last seconds again, because an end may be committed after later ones.
"""

from collections import deque

import msgspec

from windlass.client.app import App
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import Status
from windlass.server.events import event
from windlass.server.events.event import Event
from windlass.store.clock import since_boot
from windlass.store.records import JobEnd

REPEATED: Micros = SECOND
"""How much of the past every look reads again."""
LATE: Micros = 15 * SECOND
"""How much of it is read again every five seconds: an end that is committed later than this is not sent."""
LATE_EVERY: Micros = 5 * SECOND
SETTINGS_EVERY: Micros = SECOND
PAGE = 1_000
MAX_PAGES = 10
"""Of one look; the next look continues."""
MAX_LAG: Micros = 60 * SECOND
"""A reader that is further behind skips to the present."""
MAX_REPLAY: Micros = 3600 * SECOND
MAX_REPLAYED = 10_000
"""Jobs that ended, read for one listener."""
MAX_FAILURES = 200
MAX_KEPT = 1_000
"""Events other than ends, kept for a replay."""


class Wanted(msgspec.Struct, frozen=True):
    """What some listener wants beside ends of jobs."""

    failures: bool = False
    queues: bool = False
    schedules: bool = False
    jobs: frozenset[JobId] = frozenset()


class Replay(msgspec.Struct):
    """Events after a position; `complete` is false if there were too many, or they are too old."""

    events: list[Event]
    complete: bool


class EventReader:
    """The position of one server in the history, and the ends that it has sent."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.sequence = 0
        """The number of the last look; 0: before the first one."""
        self._reported: dict[tuple[JobId, Micros], int] = {}
        """Ends of the last seconds, and the look that found them."""
        self._kept: deque[tuple[int, Event]] = deque(maxlen=MAX_KEPT)
        self._position: Micros = 0
        self._began: Micros = 0
        self._late_at: Micros = 0
        self._settings_at: Micros = 0
        # None: no listener asks for it.
        self._failed: dict[tuple[JobId, Micros], None] | None = None
        self._queues: dict[str, str] | None = None
        self._schedules: dict[str, Schedule] | None = None
        self._jobs: dict[JobId, object] = {}

    async def begin(self) -> None:
        """Start at the present: earlier ends are not sent."""
        operator = (await self._app._ready()).operator
        self._position = self._began = (await operator.ended(None, None, 1)).now
        await self._read(self._position - LATE)
        self._late_at = self._settings_at = since_boot()

    async def prepare(self, wanted: Wanted) -> None:
        """Read the state that changes are compared with, for the first listener that wants them."""
        if wanted.failures and self._failed is None:
            await self._read_failures()
        if wanted.queues and self._queues is None:
            await self._changed_queues()
        if wanted.schedules and self._schedules is None:
            await self._changed_schedules()
        if missing := wanted.jobs - self._jobs.keys():
            await self._read_jobs(missing)

    async def look(self, wanted: Wanted) -> list[Event]:
        """What happened since the last look."""
        self.sequence += 1
        found = [event.job_ended(end) for end in await self._ends()]
        others: list[Event] = []
        if not wanted.failures:
            self._failed = None
        else:
            others += [event.failure(job) for job in await self._read_failures()]
        if since_boot() - self._settings_at >= SETTINGS_EVERY:
            self._settings_at = since_boot()
            others += await self._changed_queues() if wanted.queues else []
            others += await self._changed_schedules() if wanted.schedules else []
            self._queues = self._queues if wanted.queues else None
            self._schedules = self._schedules if wanted.schedules else None
        others += await self._changed_jobs(wanted.jobs)
        self._kept.extend((self.sequence, each) for each in others if each.name != event.WATCHED)
        return found + others

    async def _ends(self) -> list[JobEnd]:
        late = since_boot() - self._late_at >= LATE_EVERY
        found = []
        if late:
            self._late_at = since_boot()
            found = (await self._read(self._position - LATE))[0]
        more, now, reached = await self._read(self._position - REPEATED)
        lag = now - reached
        self._position = now if lag > MAX_LAG else max(self._position, reached)
        for key in [key for key in self._reported if key[1] < self._position - 2 * LATE]:
            del self._reported[key]
        return found + more

    async def _read(self, since: Micros) -> tuple[list[JobEnd], Micros, Micros]:
        """Ends that were not sent yet, the store's time, and the moment up to which all ends were read."""
        operator = (await self._app._ready()).operator
        new: list[JobEnd] = []
        after: JobId | None = None
        now = reached = 0
        for _ in range(MAX_PAGES):
            page = await operator.ended(since, after, PAGE)
            now = now or page.now
            for end in page.ends:
                if (end.id, end.at) not in self._reported:
                    self._reported[end.id, end.at] = self.sequence
                    new.append(end)
            if len(page.ends) < PAGE:
                return new, now, now
            since, after = page.ends[-1].at, page.ends[-1].id
            reached = since
        return new, now, reached

    async def _read_failures(self) -> list[Job]:
        """The newest failed jobs that will be retried and were not sent yet."""
        jobs = await (await self._app._ready()).operator.failures(MAX_FAILURES)
        failed = {(job.id, to_micros(job.updated_at)): job for job in jobs if job.status is Status.FAILED}
        before, self._failed = self._failed, dict.fromkeys(failed)
        return [] if before is None else [job for key, job in failed.items() if key not in before][::-1]

    async def _changed_queues(self) -> list[Event]:
        queues = {queue.name: queue for queue in await self._app.queues.alist()}
        versions = {name: queue.version for name, queue in queues.items()}
        before, self._queues = self._queues, versions
        if before is None:
            return []
        changed = sorted(name for name in versions.keys() | before if versions.get(name) != before.get(name))
        return [event.queue_changed(name, queues.get(name), self._position) for name in changed]

    async def _changed_schedules(self) -> list[Event]:
        found = {each.name: each for each in await self._app.schedules.alist()}
        before, self._schedules = self._schedules, found
        if before is None:
            return []
        changed = [name for name in sorted(found.keys() | before) if _version(found, name) != _version(before, name)]
        return [event.schedule_changed(name, found.get(name), before.get(name), self._position) for name in changed]

    async def _changed_jobs(self, ids: frozenset[JobId]) -> list[Event]:
        """Events of the watched jobs that changed."""
        before = {id_: content for id_, content in self._jobs.items() if id_ in ids}
        self._jobs = {}
        found = await self._read_jobs(ids)
        changed = [job for job in found if job.id in before and before[job.id] != self._jobs[job.id]]
        return [event.job_event(event.WATCHED, job, self._position) for job in changed]

    async def _read_jobs(self, ids: frozenset[JobId]) -> list[Job]:
        found = await (await self._app._ready()).operator.get(sorted(ids)) if ids else []
        jobs = [job for job in found if job is not None]
        self._jobs |= {job.id: _content(job) for job in jobs}
        return jobs

    async def replay(self, id_: str, sequence: int) -> Replay:
        """The events after one, up to a look; later looks are sent as they happen.

        An event of another server is found by its time: events of the second before it may be repeated.
        """
        at, job = event.position_of(id_)
        seen = self._reported.get((job, at))
        oldest = self._position - MAX_REPLAY
        since = max(at - (LATE if seen is not None else REPEATED), oldest)
        ends, complete = await self._history(since)
        events = [event.job_ended(end) for end in ends if self._is_due(end, (at, job), seen, sequence)]
        events += self._others_after(id_, at, seen, sequence)
        return Replay(sorted(events, key=lambda each: each.at), complete and at >= oldest)

    def _others_after(self, id_: str, at: Micros, seen: int | None, sequence: int) -> list[Event]:
        """Events other than ends, in their order: those of one look have the same time, and follow its ends."""
        kept = [(number, each) for number, each in self._kept if number <= sequence]
        for index, (_, each) in enumerate(kept):
            if each.id == id_:
                return [later for _, later in kept[index + 1 :]]
        if seen is not None:
            return [each for number, each in kept if number >= seen]
        return [each for _, each in kept if each.at > at - REPEATED]

    def _is_due(self, end: JobEnd, after: tuple[Micros, JobId], seen: int | None, sequence: int) -> bool:
        """Whether an end belongs to a replay: sent by a look up to `sequence`, and after the position."""
        look = self._reported.get((end.id, end.at))
        if look is None and end.at > self._began:
            return False  # the next look will find it
        if look is not None and look > sequence:
            return False
        if seen is None:
            return (end.at, end.id) != after
        return (end.at, end.id) > after or (look is not None and look > seen)

    async def _history(self, since: Micros) -> tuple[list[JobEnd], bool]:
        operator = (await self._app._ready()).operator
        found: list[JobEnd] = []
        after: JobId | None = None
        while len(found) < MAX_REPLAYED:
            page = (await operator.ended(since, after, PAGE)).ends
            found += page
            if len(page) < PAGE:
                return found, True
            since, after = page[-1].at, page[-1].id
        return found, False


def _version(schedules: dict[str, Schedule], name: str) -> str | None:
    found = schedules.get(name)
    return None if found is None else found.version


def _content(job: Job) -> object:
    """A value that changes whenever the page of the job does."""
    return job.status, job.version, job.progress, len(job.logs), job.logs[-1:] and job.logs[-1].at
