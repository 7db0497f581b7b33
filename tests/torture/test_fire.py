"""fire, killed: a process that dies on either side of the commit leaves a tick with one job, or with none yet."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.addresses import on_sql
from tests.support.clock import ManualClock
from tests.support.timing import MINUTE, add, find, fire, moment, ticks_of
from windlass.core.moments import to_datetime
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


@on_sql
@pytest.mark.parametrize(("side", "jobs"), [("before_commit", 0), ("after_commit", 1)])
async def test_a_coordinator_that_is_killed_at_the_commit_leaves_no_half_of_a_tick(
    address: str, clock: ManualClock, side: str, jobs: int
) -> None:
    store = open_store(address, clock=clock)
    await add(store)
    tick = moment(await find(store))
    killed = subprocess.run(  # noqa: ASYNC221 - no other task is on this loop
        [sys.executable, "-c", COORDINATOR, address, to_datetime(tick).isoformat()],
        env={**os.environ, "WINDLASS_FAILPOINTS": f"fire.{side}=kill"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert await ticks_of(store) == [tick] * jobs
    assert moment(await find(store)) == tick + jobs * MINUTE
    clock.advance(MINUTE)
    await fire(store)
    assert await ticks_of(store) == [tick]
    await store.close()
