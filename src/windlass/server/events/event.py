"""Events: their data, which of them a listener gets, and their frames in the stream."""

from typing import Any

import msgspec

from windlass.client.event_data import EventData, end_data, end_name, event_error
from windlass.core.flow.queue import Queue
from windlass.core.ids import is_id
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros, to_datetime, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.search import like
from windlass.core.tokens import Rights
from windlass.core.webhooks.webhook import ENDS
from windlass.errors import InvalidOption
from windlass.server.problem import Refused
from windlass.store.records import JobEnd

EVENTS = (
    *ENDS,
    "job.failed",
    "queue.changed",
    "schedule.changed",
    "job.changed",
)
WATCHED = "job.changed"
"""Sent only for the job that a listener names."""
_encode = msgspec.json.Encoder().encode


Pair = tuple[str, str | None]
"""A queue, and a type in it."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    id: str
    name: str
    at: Micros
    pairs: tuple[Pair, ...]
    """What a token must cover to get it; none: the token must be unlimited."""
    frame: bytes
    job: str = ""


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener wants: every given field must match."""

    names: frozenset[str]
    queues: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()
    job: str = ""

    def wants(self, event: Event, rights: Rights) -> bool:
        """Whether the event matches, and is within the limits of the token."""
        if event.name not in self.names or (self.job and event.job != self.job):
            return False
        if rights.is_limited and not (event.pairs and all(rights.covers(*pair) for pair in event.pairs)):
            return False
        return self._is_chosen(event.pairs)

    def _is_chosen(self, pairs: tuple[Pair, ...]) -> bool:
        if self.queues and not any(queue in self.queues for queue, _ in pairs):
            return False
        return not self.types or any(type_ and like(type_, each) for _, type_ in pairs for each in self.types)


def make_filter(names: tuple[str, ...], queues: tuple[str, ...], types: tuple[str, ...], job: str) -> EventFilter:
    """The filter of a request; raises InvalidOption."""
    for each in names:
        if each not in EVENTS:
            raise InvalidOption("event", f"{each[:80]!r} is not one of {', '.join(EVENTS)}")
    if job and not is_id(job):
        raise InvalidOption("job", "is not the id of a job")
    if WATCHED in names and not job:
        raise InvalidOption("job", f"names the job of {WATCHED}")
    every = frozenset(EVENTS) - (frozenset() if job else {WATCHED})
    return EventFilter(names=frozenset(names) or every, queues=frozenset(queues), types=types, job=job)


def job_ended(end: JobEnd) -> Event:
    """The event of a job that ended."""
    return _event(end_name(end), end.at, end.id, end_data(end), ((end.queue, end.type),), job=end.id)


def job_event(name: str, job: Job, at: Micros) -> Event:
    """The event of a job that has not ended."""
    record = EventData(
        at=to_datetime(at),
        job=job.id,
        type=job.type,
        queue=job.queue,
        status=job.status,
        attempt=job.attempt,
        tenant=job.tenant,
        schedule=job.schedule,
        tags=job.tags,
        reason=job.reason,
        error=event_error(job.error),
        progress=job.without_note().progress if name == WATCHED else None,
    )
    return _event(name, at, job.id, record, ((job.queue, job.type),), job=job.id)


def failure(job: Job) -> Event:
    """The event of an attempt that failed and will be repeated."""
    return job_event("job.failed", job, to_micros(job.updated_at))


def queue_changed(name: str, queue: Queue | None, at: Micros) -> Event:
    """The event of a changed queue; None: it is gone."""
    record = EventData(at=to_datetime(at), queue=name)
    if queue is not None:
        record.version, record.paused, record.closed = queue.version, queue.paused, queue.closed
    return _event("queue.changed", at, f"q{record.version}", record, ((name, None),))


def schedule_changed(name: str, schedule: Schedule | None, last: Schedule | None, at: Micros) -> Event:
    """The event of a changed schedule; `last` is its state before the change."""
    record = EventData(at=to_datetime(at), schedule=name)
    if schedule is not None:
        record.version, record.paused = schedule.version, schedule.paused
    shown = [settings.job for each in (schedule, last) if each for settings in (each.changed, each.declared)]
    pairs = tuple((job.queue, job.type) for job in shown if job is not None)
    return _event("schedule.changed", at, f"s{record.version}", record, pairs)


def _event(name: str, at: Micros, what: str, record: Any, pairs: tuple[Pair, ...], job: str = "") -> Event:
    id_ = f"{at}.{what}.{name.rpartition('.')[2]}"
    return Event(id=id_, name=name, at=at, pairs=pairs, frame=frame(name, record, id_), job=job)


def frame(name: str, record: Any, id_: str = "") -> bytes:
    """The frame of an event. JSON has no line breaks, so it is one line of data."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: ".encode() + _encode(record) + b"\n\n"


def position_of(id_: str) -> tuple[Micros, str]:
    """The moment and the job of an event's id; raises Refused."""
    moment, _, rest = id_.partition(".")
    if not moment.isdecimal() or not moment.isascii() or len(moment) > 17 or not rest:
        raise Refused(400, "invalid_event_id", "is not the id of an event", field="Last-Event-ID")
    what = rest.rpartition(".")[0]
    return int(moment), what if is_id(what) else ""
