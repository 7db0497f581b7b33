"""Samples on PostgreSQL: a held snapshot, and many who sample at once."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.postgres.other import Other
from tests.support.clock import START, ManualClock
from tests.support.stores import STORES
from windlass.core.moments import DAY
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.samples import HOUR, LAG, MINUTE, SAMPLE_RETENTION
from windlass.core.stats.timeline import SampleQuery
from windlass.store.contract import Store
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs.prune import Pruner

FILL = """
INSERT INTO windlass.samples
SELECT :minute, :start + n * :minute, 'q' || q, 't', 1, 0, 0, 0, 0, 0, '{}', '{}'
FROM generate_series(0::bigint, 599) AS n, generate_series(1, 50) AS q
"""


async def test_under_a_held_snapshot_pruning_does_not_walk_past_what_is_dead(
    store: PostgresStore, clock: ManualClock, other: Other, connection: Any
) -> None:
    """By what it reads, not by how long that takes: pages, from the beginning and from where it goes on."""
    await connection.execute(FILL.replace(":minute", str(MINUTE)).replace(":start", str(START)))
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    clock.advance(SAMPLE_RETENTION[MINUTE] + 10 * HOUR)
    pruner = Pruner()
    for _ in range(10):
        await pruner.prune(store._access, 100)
    assert await connection.fetchval("SELECT count(*) FROM windlass.samples") == 0
    assert await _pages(connection, pruner._samples_pruned[MINUTE]) * 5 < await _pages(connection, 0)


async def _pages(connection: Any, since: int) -> int:
    """How many pages it reads to find the first minute that is left."""
    text = f"SELECT min(interval_start) FROM windlass.samples WHERE step = {MINUTE} AND interval_start >= {since}"
    plan = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}"))[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def test_many_samplers_at_once_make_what_one_makes(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    crowd = [STORES["postgres"].open(tmp_path, clock) for _ in range(4)]
    for minute in range(30):
        types = range(20) if minute % 2 else reversed(range(20))
        times = histogram([minute])
        await store.stats.record([Meter(queue="q", type=f"t{n}", completed=1, run=times) for n in types])
        clock.advance(MINUTE)
    clock.advance(LAG)
    for _ in range(3):
        await asyncio.gather(*(each.stats.sample() for each in crowd))
    for each in crowd:
        await each.close()
    made = await store.stats.samples(SampleQuery(step=MINUTE, since=START, until=START + DAY))
    assert sum(each.completed for each in made.meters) == 600
    assert len(made.meters) == 30 * 21
    assert len([each for each in made.depths if not each.queue]) == 1
