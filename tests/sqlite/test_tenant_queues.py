"""Jobs of a queue that became fair get their tenant queues in batches, and none is skipped."""

from collections import Counter
from pathlib import Path

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import enqueue
from tests.support.stores import sqlite_file
from windlass.store.sqlite.verbs.admit import BACKFILL_BATCH


async def test_every_portion_is_reached_and_other_queues_are_left_alone(tmp_path: Path) -> None:
    store = sqlite_file(tmp_path, ManualClock())
    for _ in range(3):
        await enqueue(store, BACKFILL_BATCH // 2, tenant="a")
        await enqueue(store, BACKFILL_BATCH // 2, queue="other")
    await enqueue(store, 10, tenant="b")
    await rule(store, fair=True)
    portions = 1
    while (await store.jobs.admit(10)).next_due_in == 0:
        portions += 1
    assert portions == 4
    runner = await new_runner(store)
    assert Counter(job.tenant for job in await runner.claim(20)) == {"a": 10, "b": 10}
    await store.close()
