"""Samples on PostgreSQL: a held snapshot, and many who sample at once."""

import asyncio
from pathlib import Path
from typing import Any

from tests.postgres.other import Other
from tests.support.clock import START, ManualClock
from tests.support.stores import STORES
from windlass.core.course import Window
from windlass.core.meter import Meter, histogram
from windlass.core.moments import DAY
from windlass.core.samples import HOUR, KEPT_FOR, LAG, MINUTE
from windlass.store.contract import Store

FILL = """
INSERT INTO windlass.samples
SELECT :minute, :start + n * :minute, 'q' || q, 't', 1, 0, 0, 0, 0, 0, '{}', '{}'
FROM generate_series(0::bigint, 599) AS n, generate_series(1, 50) AS q
"""


async def test_under_a_held_snapshot_pruning_does_not_walk_past_what_is_dead(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    """By the rows that it fetches, not by how long that takes."""
    await connection.execute(FILL.replace(":minute", str(MINUTE)).replace(":start", str(START)))
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    clock.advance(KEPT_FOR[MINUTE] + 10 * HOUR)
    for _ in range(10):
        await store.operator.prune(10)
    assert await connection.fetchval("SELECT count(*) FROM windlass.samples") == 0
    before = await _fetched(connection)
    clock.advance(MINUTE)
    await store.operator.prune(10)
    assert await _fetched(connection) - before < 100, "30,000 dead rows are before it"


async def _fetched(connection: Any) -> int:
    """Entries of the index that were read so far, by anybody."""
    await asyncio.sleep(0)
    for _ in range(2):
        await connection.execute("SELECT pg_stat_force_next_flush()")
    text = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'samples_pkey'"
    return int(await connection.fetchval(text))


async def test_many_who_sample_at_once_make_what_one_makes(store: Store, clock: ManualClock, tmp_path: Path) -> None:
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
    made = await store.stats.course(Window(step=MINUTE, since=START, until=START + DAY))
    assert sum(each.completed for each in made.meters) == 600
    assert len(made.meters) == 30 * 21
    assert len([each for each in made.depths if not each.queue]) == 1
