"""One plain job, sent in a thread or by the general statement: the row is the same."""

import asyncio
from random import Random
from typing import Any

from tests.support.clock import ManualClock
from tests.support.seed import new_job
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.core.moments import DAY, SECOND
from windlass.store.postgres.connection.hints import Hint
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs.plain_job import common_values, own_values

JOBS = 60
TEXTS = ("ä€𝄞", "it's", '"quoted"', "a\\b", "two\nlines", "{1,2}", "NULL", "", " ")


def _random_job(random: Random, now: int) -> NewJob:
    fields = {
        "payload": f'{{"text": "\\u0000{random.choice(TEXTS[:2])}"}}',
        "queue": random.choice(("default", "fair", "set")),
        "type": random.choice(("t", "ä.b")),
        "priority": random.randint(-3, 3),
        "run_at": random.choice((None, now, now - DAY, now + DAY)),
        "delay": random.choice((0, 1, 5 * SECOND)),
        "max_attempts": random.choice((None, 1, 7)),
        "tenant": random.choice((None, *TEXTS)),
        "parent": random.choice((None, new_id())),
        "flow": random.choice((None, *TEXTS)),
        "timeout": random.choice((None, 0, SECOND)),
        "expires": random.choice((None, 0, SECOND)),
        "expires_at": random.choice((None, now - DAY, now + DAY)),
        "tags": random.choice(((), ("a", "ä"), TEXTS)),
        "meta": random.choice((None, '{"a": "ä"}')),
    }
    return new_job(fresh="here", **fields)


async def _row(connection: Any, job: NewJob) -> dict[str, Any]:
    (row,) = await connection.fetch("DELETE FROM windlass.jobs WHERE id = $1::text::uuid RETURNING *", job.id)
    return dict(row)


async def _enqueue_generally(store: PostgresStore, job: NewJob) -> int:
    values = {**common_values(job, Hint("", given=False)), **own_values([job])}
    return await store._access.once(lambda db: db.run("enqueue", values))


async def test_both_ways_write_the_same_row(store: PostgresStore, clock: ManualClock, connection: Any) -> None:
    for queue in ("default", "fair", "set"):
        await store.jobs.enqueue([new_job(queue=queue, priority=priority) for priority in range(-3, 4)])
    await connection.execute(
        "UPDATE windlass.queues SET fair = name = 'fair', max_attempts = 9, timeout = 3 WHERE name <> 'default'"
    )
    await connection.execute("UPDATE windlass.watermarks SET rank = rank + 1000000 WHERE sort_priority > 0")
    random, direct = Random(1), store._enqueuer.direct
    await direct.lend(store._server)
    for _ in range(JOBS):
        job = _random_job(random, clock.wall())
        assert await asyncio.to_thread(direct.enqueue, store._access, [job]) is not None
        sent = await _row(connection, job)
        assert await _enqueue_generally(store, job) == 1
        assert sent == await _row(connection, job)
