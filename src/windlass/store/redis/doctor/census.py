"""The census of a store: live workers and waiting jobs, counted by index, up to a bound."""

from collections import Counter
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.store.doctor import Census, Waiting
from windlass.store.redis.doctor.read_only_access import ReadOnlyAccess
from windlass.store.redis.liveness.leadership import coordinator, late_runners
from windlass.store.redis.liveness.workers import live_workers
from windlass.store.redis.operator.queues import read_queues
from windlass.store.redis.schedules.read_schedules import all_schedules
from windlass.store.redis.verbs.held import held_by_runner

MAX_DELAYED = 2_000
"""Of each queue: a doctor at the bed of millions must not take long."""
STEP = 500


class QueueCensus(msgspec.Struct):
    """What census.lua found in one queue."""

    waiting: list[Waiting]
    counted_all: bool
    newest: Micros | None
    dead: int


async def take_census(access: ReadOnlyAccess) -> Census:
    """Each queue is one picture; they are taken one after the other."""
    now = await access.now()
    names = await access.queue_names()
    workers = await live_workers(access)
    late = await late_runners(access, now)
    queues = [await _queue_census(access, name, now) for name in names]
    held = await held_by_runner(access, names if late else ())
    moments = [queue_census.newest for queue_census in queues] + [await _last_beat(access)]
    kept = await read_queues(access, names)
    return Census(
        now=now,
        newest=max((moment for moment in moments if moment is not None), default=None),
        workers=tuple(workers),
        waiting=tuple(each for queue_census in queues for each in queue_census.waiting),
        counted_all=all(queue_census.counted_all for queue_census in queues),
        paused=tuple(name for name in names if kept[name].queue.paused),
        dead=sum(queue_census.dead for queue_census in queues),
        late_runners=len(late),
        late_jobs=sum(held[runner] for runner in late),
        coordinator=await coordinator(access, now),
        schedules=tuple(await all_schedules(access)),
    )


async def _queue_census(access: ReadOnlyAccess, queue: str, now: Micros) -> QueueCensus:
    pending, parked, newest, dead = await access.call("census", queue, ())
    waiting = [Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=True) for type_, jobs in pending]
    waiting += [
        Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=False, parked=True) for type_, jobs in parked
    ]
    delayed, complete = await _delayed(access, queue, now)
    return QueueCensus(waiting + delayed, complete, newest or None, dead)


async def _delayed(access: ReadOnlyAccess, queue: str, now: Micros) -> tuple[list[Waiting], bool]:
    """Delayed jobs and retries, those that are due first, and whether that is all of them."""
    found: Counter[tuple[str, bool]] = Counter()
    for start in range(0, MAX_DELAYED, STEP):
        rows: list[Any] = await access.call("census_delayed", queue, (start, STEP))
        for type_, moment in rows:
            found[type_.decode(), moment <= now] += 1
        if len(rows) < STEP:
            break
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=due) for (type_, due), jobs in sorted(found.items())]
    return waiting, sum(found.values()) < MAX_DELAYED


async def _last_beat(access: ReadOnlyAccess) -> Micros | None:
    last = await access.command("ZREVRANGE", "heartbeats", 0, 0, "WITHSCORES")
    if not last:
        return None
    first = last[0]
    return int(float(first[1] if isinstance(first, tuple | list) else last[1]))
