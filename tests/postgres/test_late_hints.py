"""A hint that is held back for a moment is given after the commit, however long that takes."""

import asyncio
from typing import Any

from tests.postgres.other import Other
from tests.support.seed import enqueue, new_job
from windlass.store.contract import Store
from windlass.store.postgres.connection.hints import QUIET_SECONDS


async def test_who_listens_is_woken_after_a_slow_commit(store: Store, other: Other, connection: Any) -> None:
    await enqueue(store)
    heard = asyncio.Event()
    await connection.add_listener("windlass.windlass", lambda *_: heard.set())
    await store.jobs.enqueue([new_job(fresh="here")])
    await other.does("LOCK TABLE windlass.jobs IN EXCLUSIVE MODE")
    # Within the quiet time after the one before: it is told of a little later.
    handing_in = asyncio.create_task(store.jobs.enqueue([new_job(fresh="here")]))
    await other.is_waited_for()
    await asyncio.sleep(3 * QUIET_SECONDS)
    heard.clear()
    await other.commits()
    await handing_in
    async with asyncio.timeout(30):
        assert await heard.wait()
