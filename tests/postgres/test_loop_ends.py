"""Programs that call asyncio.run() again and again, and leave enqueues under way at its end."""

import asyncio
import gc
import os
from pathlib import Path

from tests.support.stores import postgres_url
from windlass import App

RUNS = 60
SPARE = 2
"""Descriptors of the last loop and of the blocking calls, which are still in use."""


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_loops_that_end_with_enqueues_under_way_leave_no_connections(tmp_path: Path) -> None:
    app = App(postgres_url(tmp_path))

    @app.task
    def task(number: int) -> None: ...

    async def leave_enqueues(pause: float) -> None:
        left = [asyncio.ensure_future(task.aenqueue(number)) for number in range(5)]
        await asyncio.wait(left, timeout=pause)

    task.enqueue(0)
    before = open_descriptors()
    for number in range(RUNS):
        asyncio.run(leave_enqueues(0.0005 * number))
    after = open_descriptors()
    app.close()
    assert after <= before + SPARE
