"""Gauges of the whole store: on the server and the coordinator only, so that a sum over targets is true."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from windlass.core.moments import SECOND
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import Status
from windlass.errors import WindlassError
from windlass.observe.alerts import queues_without_worker, types_without_worker
from windlass.observe.families import Family, Labels, gauge
from windlass.observe.reading import MAX_ROWS, OTHER
from windlass.store.contract import Store
from windlass.store.records import WorkerInfo

T = TypeVar("T")
READ_SECONDS = 1.0
"""A scrape never waits longer for the store; then `windlass_store_up` is 0 and the other gauges are absent."""


class StoreState(msgspec.Struct, frozen=True, kw_only=True):
    """The facts behind the gauges, read at one time."""

    counts: dict[str, dict[str, int]]
    oldest: dict[str, float]
    """Seconds, by queue."""
    paused: dict[str, bool]
    workers: list[WorkerInfo]
    parked_types: list[str]
    schedules: list[Schedule]
    coordinator: str | None

    @property
    def types_without_worker(self) -> list[str]:
        """Types of jobs that were parked, and of active schedules, that no live worker knows."""
        return types_without_worker(self.parked_types, self.schedules, self.workers)


async def read_state(store: Store) -> StoreState:
    """Read the store, one call after the other."""
    return StoreState(
        counts=(await store.operator.counts()).queues,
        oldest={queue: micros / SECOND for queue, micros in (await store.stats.oldest()).items()},
        paused={queue.name: queue.paused for queue in await store.queues.list()},
        workers=await store.workers.list(),
        parked_types=await store.jobs.parked_types(),
        schedules=await store.schedules.list(),
        coordinator=await store.leader.current(),
    )


async def store_families(store: Store) -> list[Family]:
    """The gauges of the store; if it does not answer in time, that alone."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            state = await read_state(store.with_timeout(READ_SECONDS))
    except (WindlassError, TimeoutError):
        return no_store()
    return [_store_up(1), *_queues(state), *_fleet(state), *_schedules(state.schedules)]


def no_store() -> list[Family]:
    """All that is known of a store that does not answer."""
    return [_store_up(0)]


def _store_up(value: int) -> Family:
    return gauge("windlass_store_up", "Whether the store answered within a second.", [((), value)])


def _queues(state: StoreState) -> Iterable[Family]:
    jobs: dict[Labels, float] = {}
    known = {name: state.counts.get(name, {}) for name in {*state.counts, *state.paused}}
    for queue, statuses in _bounded(known):
        for status in Status:
            jobs[queue, status] = jobs.get((queue, status), 0) + statuses.get(status, 0)
    yield gauge("windlass_queue_jobs", "Jobs by status.", list(jobs.items()), ("queue", "status"))
    oldest: dict[Labels, float] = {}
    for queue, seconds in _bounded({name: state.oldest.get(name, 0.0) for name in known}):
        oldest[queue,] = max(oldest.get((queue,), 0.0), seconds)
    text = "Time that the oldest pending job has waited; 0 if none waits."
    yield gauge("windlass_queue_oldest_pending_seconds", text, list(oldest.items()), ("queue",))
    paused: dict[Labels, float] = {}
    for queue, is_paused in _bounded({name: state.paused.get(name, False) for name in known}):
        paused[queue,] = min(paused.get((queue,), 1.0), float(is_paused))  # others: if all of them are
    yield gauge("windlass_queue_paused", "Whether the queue is paused.", list(paused.items()), ("queue",))


def _fleet(state: StoreState) -> Iterable[Family]:
    yield gauge("windlass_workers", "Live workers.", [((), len(state.workers))])
    up = 0 if state.coordinator is None else 1
    yield gauge("windlass_coordinator_up", "Whether there is a coordinator.", [((), up)])
    paused = [queue for queue, is_paused in state.paused.items() if is_paused]
    unserved = queues_without_worker(state.oldest, paused, state.workers)
    found: dict[Labels, float] = {(name,): 1 for name, _ in _bounded(dict.fromkeys(unserved))}
    text = "Queues in which jobs wait and that no live worker serves; paused ones do not count."
    yield gauge("windlass_queues_without_worker", text, list(found.items()), ("queue",))
    unknown: dict[Labels, float] = {(name,): 1 for name, _ in _bounded(dict.fromkeys(state.types_without_worker))}
    text = "Types of parked jobs and of schedules that no live worker knows."
    yield gauge("windlass_types_without_worker", text, list(unknown.items()), ("type",))


def _schedules(schedules: Sequence[Schedule]) -> Iterable[Family]:
    active = [each for each in schedules if not each.paused][:MAX_ROWS]
    for name, text, moments in (
        ("last", "The last tick that was fired.", {each.name: each.last_at for each in active}),
        ("next", "The next tick to fire.", {each.name: each.next_at for each in active}),
    ):
        yield gauge(f"windlass_schedule_{name}_tick_timestamp_seconds", text, _moments(moments), ("schedule",))


def _moments(moments: Mapping[str, datetime | None]) -> list[tuple[Labels, float]]:
    return [((name,), moment.timestamp()) for name, moment in moments.items() if moment is not None]


def _bounded(named: Mapping[str, T]) -> Iterable[tuple[str, T]]:
    """The counts by name; beyond MAX_ROWS names the name is `other`."""
    for index, name in enumerate(sorted(named)):
        yield name if index < MAX_ROWS else OTHER, named[name]
