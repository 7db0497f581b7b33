"""The census of a store: live workers, and what waits. Counted by index, and never more than so many of a kind."""

from collections import Counter
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.store.examination import Census, Waiting
from windlass.store.redis.examination.onlooker import Onlooker
from windlass.store.redis.held import held_by_runner
from windlass.store.redis.office import late_runners, office_holder
from windlass.store.redis.queues import read_queues
from windlass.store.redis.roster import all_schedules
from windlass.store.redis.workers import live_workers

MOST_DELAYED = 2_000
"""Of each queue: a doctor at the bed of millions must not take long."""
STEP = 500


class Ward(msgspec.Struct):
    """What census.lua found in one queue."""

    waiting: list[Waiting]
    counted_all: bool
    newest: Micros | None
    dead: int


async def take_census(onlooker: Onlooker) -> Census:
    """Each queue is one picture; they are taken one after the other."""
    now = await onlooker.now()
    names = await onlooker.queue_names()
    workers = await live_workers(onlooker)
    late = await late_runners(onlooker, now)
    wards = [await _ward(onlooker, name, now) for name in names]
    held = await held_by_runner(onlooker, names if late else ())
    moments = [ward.newest for ward in wards] + [await _last_beat(onlooker)]
    kept = await read_queues(onlooker, names)
    return Census(
        now=now,
        newest=max((moment for moment in moments if moment is not None), default=None),
        workers=tuple(workers),
        waiting=tuple(each for ward in wards for each in ward.waiting),
        counted_all=all(ward.counted_all for ward in wards),
        paused=tuple(name for name in names if kept[name].queue.paused),
        dead=sum(ward.dead for ward in wards),
        late_runners=len(late),
        late_jobs=sum(held[runner] for runner in late),
        coordinator=await office_holder(onlooker, now),
        schedules=tuple(await all_schedules(onlooker)),
    )


async def _ward(onlooker: Onlooker, queue: str, now: Micros) -> Ward:
    pending, parked, newest, dead = await onlooker.call("census", queue, ())
    waiting = [Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=True) for type_, jobs in pending]
    waiting += [
        Waiting(queue=queue, type=type_.decode(), jobs=jobs, due=False, parked=True) for type_, jobs in parked
    ]
    delayed, complete = await _delayed(onlooker, queue, now)
    return Ward(waiting + delayed, complete, newest or None, dead)


async def _delayed(onlooker: Onlooker, queue: str, now: Micros) -> tuple[list[Waiting], bool]:
    """Delayed jobs and retries, those that are due first, and whether that is all of them."""
    found: Counter[tuple[str, bool]] = Counter()
    for start in range(0, MOST_DELAYED, STEP):
        rows: list[Any] = await onlooker.call("census_delayed", queue, (start, STEP))
        for type_, moment in rows:
            found[type_.decode(), moment <= now] += 1
        if len(rows) < STEP:
            break
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=due) for (type_, due), jobs in sorted(found.items())]
    return waiting, sum(found.values()) < MOST_DELAYED


async def _last_beat(onlooker: Onlooker) -> Micros | None:
    last = await onlooker.command("ZREVRANGE", "beats", 0, 0, "WITHSCORES")
    if not last:
        return None
    first = last[0]
    return int(float(first[1] if isinstance(first, tuple | list) else last[1]))
