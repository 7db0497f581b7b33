"""Token buckets of keys are dropped when they are full."""

import sqlite3
from pathlib import Path

from tests.support.clock import ManualClock
from tests.support.runners import new_runner
from tests.support.seed import enqueue_one
from tests.support.stores import sqlite_file_by_stdlib
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND


def token_buckets(folder: Path) -> int:
    """How many there are."""
    with sqlite3.connect(folder / "windlass.db") as connection:
        ((found,),) = connection.execute("SELECT count(*) FROM windlass_token_buckets").fetchall()
    connection.close()
    return int(found)


async def test_a_token_bucket_that_is_full_again_is_dropped(tmp_path: Path) -> None:
    clock = ManualClock()
    store = sqlite_file_by_stdlib(tmp_path, clock)
    for key in ("quick", "slow"):
        rate = parse_rate("1/s" if key == "quick" else "1/h", "r")
        await enqueue_one(store, concurrency_key=key, key_rate=rate)
    runner = await new_runner(store)
    assert len(await runner.claim()) == 2
    await store.operator.prune(10)
    assert token_buckets(tmp_path) == 2
    clock.advance(SECOND)
    await store.operator.prune(10)
    assert token_buckets(tmp_path) == 1
    await store.close()


async def test_a_queue_that_was_turned_away_is_not_shut_for_ever_by_a_clock_that_is_set_back(tmp_path: Path) -> None:
    clock = ManualClock()
    store = sqlite_file_by_stdlib(tmp_path, clock)
    await store.queues.change("default", QueueSettings(max_concurrency=5))
    await enqueue_one(store)
    runner = await new_runner(store)
    assert await runner.claim(free=0) == []
    assert await store.signals.has_work(["default"], None) is False
    clock.jump_wall(-3600 * SECOND)
    assert await store.signals.has_work(["default"], None) is True
    await store.close()
