"""Ticks after a failover that lost the newest writes of the global keys."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one
from tests.support.timing import MINUTE, add, find, fire, moment, ticks_of
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.redis.records.keys import GLOBAL_KEYS
from windlass.store.redis.store import RedisStore


async def test_a_schedule_goes_on_after_a_failover_to_a_clock_that_is_behind(
    store: RedisStore, clock: ManualClock
) -> None:
    """The global keys have lost that a tick was fired, and give lower numbers now than the queue knows."""
    access = store._access
    await enqueue_one(store)
    await add(store)
    tick = moment(await find(store))
    clock.advance(tick - clock.wall() + 2 * SECOND)
    keys = access.server.keys.global_keys(tuple(GLOBAL_KEYS))
    kept = [await access._command("DUMP", key) for key in keys]
    await fire(store)
    for key, value in zip(keys, kept, strict=True):
        await access._command("DEL", key)
        if value is not None:
            await access._command("RESTORE", key, 0, value)
    clock.jump_wall(-SECOND)
    with pytest.raises(StoreUnavailable):
        await fire(store)
    clock.advance(2 * SECOND)
    await fire(store)
    clock.advance(MINUTE)
    await fire(store)
    assert await ticks_of(store) == [tick, tick + MINUTE]
