"""fire, killed between its steps: the next coordinator finishes the plan, though later it would decide otherwise."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.servers.redis_places import redis_cluster_place, redis_place
from tests.support.timing import MINUTE, add, find, fire, moment, ticks_of
from windlass.core.moments import SECOND, to_datetime
from windlass.store.open import open_store

COORDINATOR = """
import asyncio, sys
from datetime import datetime
from windlass.coordinator.duties import Fire
from windlass.store.clock import ManualClock
from windlass.store.open import open_store

url, now = sys.argv[1:]
store = open_store(url, clock=ManualClock(datetime.fromisoformat(now)))
asyncio.run(Fire(store, print).run())
"""

POINTS = {
    "fire.before_commit": (False, 0, 0),
    "fire.after_commit": (True, 0, 0),
    "enqueue_jobs.before_commit": (True, 0, 0),
    "enqueue_jobs.after_commit": (True, 1, 0),
    "advance.before_commit": (True, 1, 0),
    "advance.after_commit": (True, 1, 1),
}
"""Whether the plan was written before, how many jobs came of it, and how many ticks the schedule went on."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("place", [redis_place, redis_cluster_place], ids=["server", "cluster"])
async def test_a_death_at_any_step_leaves_a_tick_that_gets_one_job(
    tmp_path: Path, clock: ManualClock, place: Callable[[Path], str], point: str
) -> None:
    planned, jobs, went = POINTS[point]
    url = place(tmp_path)
    store = open_store(url, clock=clock)
    await add(store)
    tick = moment(await find(store))
    killed = subprocess.run(  # noqa: ASYNC221 - no other task is on this loop
        [sys.executable, "-c", COORDINATOR, url, to_datetime(tick).isoformat()],
        env={**os.environ, "WINDLASS_FAILPOINTS": f"{point}=kill"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert await ticks_of(store) == [tick] * jobs
    assert moment(await find(store)) == tick + went * MINUTE

    clock.advance(10 * MINUTE + 30 * SECOND)
    while await fire(store):
        pass
    found, last = await find(store), tick + 9 * MINUTE
    assert await ticks_of(store) == ([tick, last] if planned else [last])
    assert (found.missed, found.skipped) == (8 if planned else 9, 0)
    assert found.last_at == to_datetime(last)
    await store.close()
