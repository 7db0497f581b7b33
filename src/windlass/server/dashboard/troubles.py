"""Findings: what is wrong now within the caller's limits, worst first, each with a link."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from windlass.core.moments import SECOND, show_duration
from windlass.core.stats.meter import Recent
from windlass.server.api.queues import QueueRecord
from windlass.server.api.schedule_records import ScheduleRecord
from windlass.server.dashboard.page import link
from windlass.store.records import WorkerInfo

LONG_WAIT = 300.0
"""Seconds that a job of a queue that is not paused may be pending before it is a finding."""
OVERDUE = timedelta(minutes=2)
MIN_FAILURES = 5
MAX_FAILED_SHARE = 0.25
"""A larger share of failed attempts of a type is a finding, from MIN_FAILURES on."""
STALE = timedelta(seconds=60)
"""A worker without a beat for this long."""


class Trouble(msgspec.Struct, frozen=True):
    """One finding: `bad` needs action, `note` is good to know."""

    level: Literal["bad", "note"]
    text: str
    to: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What findings are derived from."""

    now: datetime
    queues: Sequence[QueueRecord]
    oldest: Mapping[str, float]
    workers: Sequence[WorkerInfo]
    schedules: Sequence[ScheduleRecord]
    dead: int
    recent: Recent = Recent(0, ())
    """Of the last five minutes."""
    parked_types: Sequence[str] = ()
    """Types whose jobs were set aside because no live worker knew them."""


def troubles(state: State) -> list[Trouble]:
    """All findings."""
    found = [*_workers(state), *_queues(state), *_types(state), *_schedules(state), *_dead(state)]
    return sorted(found, key=lambda each: each.level)


def _workers(state: State) -> Iterator[Trouble]:
    waiting = sum(queue.jobs.get("pending", 0) for queue in state.queues if not queue.paused)
    if not state.workers and waiting:
        yield Trouble("bad", f"No worker is alive, and {_jobs(waiting)} could run now", "/workers")
    for worker in state.workers:
        if worker.beat_at is not None and state.now - worker.beat_at > STALE:
            silent = _span((state.now - worker.beat_at).total_seconds())
            yield Trouble("bad", f"Worker {worker.id} on {worker.host} has been silent for {silent}", "/workers")


def _queues(state: State) -> Iterator[Trouble]:
    served = {name for worker in state.workers if not worker.draining for name in worker.queues}
    for queue in state.queues:
        pending, to = queue.jobs.get("pending", 0), link("/queues/" + queue.name)
        if queue.paused:
            until = "" if queue.paused_until is None else f" until {queue.paused_until:%Y-%m-%d %H:%M:%S} UTC"
            yield Trouble("note", f"Queue {queue.name} is paused{until}; {_jobs(pending)} pending", to)
        elif pending and state.workers and queue.name not in served:
            yield Trouble("bad", f"No live worker serves queue {queue.name}; {_jobs(pending)} pending", to)
        elif state.oldest.get(queue.name, 0) > LONG_WAIT:
            age = _span(state.oldest[queue.name])
            yield Trouble("bad", f"A job in queue {queue.name} has been pending for {age}", to)
        if queue.closed:
            yield Trouble("note", f"Queue {queue.name} is closed to new jobs", to)


def _types(state: State) -> Iterator[Trouble]:
    known = {type_ for worker in state.workers for type_ in worker.types}
    for type_ in sorted(set(state.parked_types) - known):
        yield Trouble("bad", f"No live worker knows type {type_}; its jobs are set aside", link("/jobs", type=type_))
    for type_, part in sorted(state.recent.by(lambda meter: meter.type).items()):
        bad = sum(each.bad for each in part.meters)
        ended = bad + sum(each.completed for each in part.meters)
        if bad >= MIN_FAILURES and bad > MAX_FAILED_SHARE * ended:
            share = f"{bad / ended:.0%} of {ended:,} attempts"
            to = f"/types/{type_}" if type_ else "/types"
            yield Trouble("bad", f"{share} of {type_ or 'other types'} failed in the last 5 minutes", to)


def _schedules(state: State) -> Iterator[Trouble]:
    for each in state.schedules:
        if each.problem is not None:
            yield Trouble("bad", f"Schedule {each.name} cannot fire: {each.problem}", "/schedules")
        elif not each.paused and each.next_at is not None and state.now - each.next_at.astimezone(UTC) > OVERDUE:
            late = _span((state.now - each.next_at).total_seconds())
            yield Trouble("bad", f"Schedule {each.name} is overdue by {late}", "/schedules")


def _dead(state: State) -> Iterator[Trouble]:
    if state.dead:
        yield Trouble("note", f"{_jobs(state.dead)} dead, to be retried or deleted", "/dead")


def _jobs(count: int) -> str:
    return f"{count:,} {'job is' if count == 1 else 'jobs are'}"


def _span(seconds: float) -> str:
    return show_duration(round(seconds) * SECOND)
