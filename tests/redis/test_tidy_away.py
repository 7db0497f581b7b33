"""Tidying while a part of the cluster is away: what can be reached is finished all the same."""

from collections.abc import Mapping
from typing import Any

import pytest
from redis.exceptions import ConnectionError as Disconnected

from tests.redis.deaths import LONG, dying_at
from tests.support.chains import after, enqueue_jobs, given, take_one
from tests.support.clock import ManualClock
from tests.support.seed import completed, new_job, settle, status_of
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.scripts.loader import Script
from windlass.store.redis.store import RedisStore


async def test_a_queue_that_is_away_delays_no_other(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One parent has a child here and one there, and who completed it has died."""
    (parent,) = await enqueue_jobs(store, [new_job()])
    near, far = after(new_job(queue="near"), parent), after(new_job(queue="far"), parent)
    await enqueue_jobs(store, [near, far])
    job = await take_one(store)
    with dying_at(("complete", True)):
        await settle(store, completed(job))
    clock.advance(LONG)
    original = Access._send

    async def send(self: Access, wanted: Script, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        reached = {queue: request for queue, request in requests.items() if queue != "far"}
        lost = dict.fromkeys(requests.keys() - reached, Disconnected("away"))
        return {**await original(self, wanted, reached), **lost}

    with monkeypatch.context() as cut:
        cut.setattr(Access, "_send", send)
        with pytest.raises(StoreUnavailable, match="away"):
            await store.tidy()
    assert given(await take_one(store, runner="r2", queues=("near",))) == "1"
    assert await status_of(store, far.id) is Status.BLOCKED
    await store.tidy()
    assert given(await take_one(store, runner="r3", queues=("far",))) == "1"
    assert await status_of(store, near.id) is Status.RUNNING
