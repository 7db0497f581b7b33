"""fire: enqueue the jobs of ticks, and advance schedules, even if other transactions lock the queues of some."""

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
"""Tries of a firing whose queues are closed meanwhile."""
LOCK_WAIT, LOCK_WAIT_APART = "1s", "100ms"
"""The lock_timeout for all firings together and, once that was exceeded, for parts of them."""
MAX_APART: Micros = 2 * SECOND
"""How long firings are split into smaller parts; other duties wait for it."""


async def fire_all(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing]) -> list[Fired]:
    """Fire all; if other transactions lock rows that some need, fire the others, and raise RowsHeld."""
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
    """Fire each half by itself, and raise RowsHeld after both if another transaction locks rows that one needs."""
    half, held = len(firings) // 2, None
    done: dict[int, Fired] = {}
    # In random order, because if many are locked there is no time to try all.
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
            continue  # nothing was done; the next try reads that the queue is closed
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
