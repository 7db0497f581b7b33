"""A hint that is delayed is sent after the commit, however long that takes."""

import asyncio
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.seed import enqueue, new_job
from windlass.core.hints import HINT_RATE
from windlass.core.moments import SECOND
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.postgres.connection import hints


async def test_a_listener_is_woken_after_a_slow_commit(
    store: Store, other: Other, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [since_boot()]
    monkeypatch.setattr(hints, "since_boot", lambda: moments[-1])
    await enqueue(store)
    for _ in range(HINT_RATE.burst):
        await store.jobs.enqueue([new_job(fresh="here")])
    woken = asyncio.Event()
    await connection.add_listener("windlass.windlass", lambda *_: woken.set())
    await other.does("LOCK TABLE windlass.jobs IN EXCLUSIVE MODE")
    # No token is left: its hint comes later.
    enqueuing = asyncio.create_task(store.jobs.enqueue([new_job(fresh="here")]))
    await other.is_waited_for()
    moments.append(moments[0] + SECOND)
    await connection.fetch("SELECT pg_sleep(0.05)")  # hints of the jobs before it
    woken.clear()
    await other.commits()
    await enqueuing
    async with asyncio.timeout(30):
        assert await woken.wait()
