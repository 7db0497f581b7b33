"""fire: enqueue the jobs of ticks and move on, while other transactions may hold queues and keys of some."""

import random
from collections.abc import Sequence

from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import SECOND, Micros
from windlass.core.schedules.firing import Fired, Firing
from windlass.errors import QueueClosed
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.verbs.enqueue import enqueue
from windlass.store.postgres.verbs.enqueue_batch import Enqueuer
from windlass.store.records import RowsHeld
from windlass.store.sql.schedules import fire

MAX_ROUNDS = 10
"""Retries of a firing, while queues are closed at the same moment."""
LOCK_WAIT, LOCK_WAIT_APART = "1s", "100ms"
"""lock_timeout: of a whole firing, and of its parts once that was too short."""
MAX_APART: Micros = 2 * SECOND
"""How long a firing is split: other duties wait."""


async def fire_all(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing]) -> list[Fired]:
    """Fire; if other transactions lock rows of some, fire the others."""
    if not firings:
        return []
    try:
        return await _fire(access, enqueuer, firings, LOCK_WAIT)
    except RowsHeld:
        if len(firings) == 1:
            raise
    ordered = sorted(firings, key=lambda each: [job.queue for job in each.jobs])
    done = await _fire_apart(access, enqueuer, ordered, since_boot() + MAX_APART)
    return [done[id(each)] for each in firings]


async def _fire_apart(
    access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], ends: Micros
) -> dict[int, Fired]:
    """Another transaction locks a queue or key of some: fire the others, then raise."""
    half, held = len(firings) // 2, None
    done: dict[int, Fired] = {}
    # In random order: where many are locked, there is no time for all.
    for part in random.sample([firings[:half], firings[half:]], 2):
        try:
            done |= await _fire_part(access, enqueuer, part, ends)
        except RowsHeld as error:
            held = error
    if held is not None:
        held.maybe_done = True
        raise held
    return done


async def _fire_part(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], ends: Micros) -> dict[int, Fired]:
    try:
        answers = await _fire(access, enqueuer, firings, LOCK_WAIT_APART)
    except RowsHeld:
        if len(firings) == 1 or since_boot() >= ends:
            raise
        return await _fire_apart(access, enqueuer, firings, ends)
    return {id(each): answer for each, answer in zip(firings, answers, strict=True)}


async def _fire(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], lock_wait: str) -> list[Fired]:
    for _ in range(MAX_ROUNDS - 1):
        try:
            return await _fire_once(access, enqueuer, firings, lock_wait)
        except QueueClosed:
            continue  # nothing was done; the next round sees that it is closed
    return await _fire_once(access, enqueuer, firings, lock_wait)


async def _fire_once(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], lock_wait: str) -> list[Fired]:
    async def work(db: Db) -> list[Fired]:
        if db.profile.lock_timeouts:
            await db.rows("set_lock_timeout", {"wait": lock_wait})
        return await fire(db, firings, enqueue_hinting)

    async def enqueue_hinting(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await enqueue(db, jobs, hint)

    with enqueuer.hinting({job.queue for each in firings for job in each.jobs}) as hint:
        return await access.ending_waits().write(work)
