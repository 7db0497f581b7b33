"""Versions of the key map: brought up to date once, by the first process, and never back."""

from pathlib import Path

import pytest

from tests.support.seed import enqueue_one
from tests.support.servers.redis_places import redis_place
from windlass.store.open import open_store
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.migrate import STEPS, VERSION, Step, bring_up
from windlass.store.redis.store import RedisStore


def _opened(folder: Path) -> RedisStore:
    store = open_store(redis_place(folder))
    assert isinstance(store, RedisStore)
    return store


async def test_the_first_to_open_a_store_makes_it(tmp_path: Path) -> None:
    first, second = _opened(tmp_path), _opened(tmp_path)
    assert await first.migrate() == [step.name for step in STEPS]
    assert await second.migrate() == []
    await first.close()
    await second.close()


async def test_missing_steps_are_done_in_order_and_the_version_is_written_after_each(tmp_path: Path) -> None:
    store = _opened(tmp_path)
    await enqueue_one(store)
    access = store._access
    seen: list[int] = []

    async def look(access: Access) -> None:
        seen.append(int(await access.command("HGET", "meta", "version")))

    steps = (*STEPS, Step("second", look), Step("third", look))
    assert await bring_up(access, VERSION, steps) == ["second", "third"]
    assert seen == [VERSION, VERSION + 1]
    assert int(await access.command("HGET", "meta", "version")) == VERSION + 2
    await store.close()


async def test_a_step_that_fails_is_done_again_and_a_slow_one_takes_nothing_back(tmp_path: Path) -> None:
    store = _opened(tmp_path)
    await store.migrate()
    access = store._access

    async def fail(access: Access) -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await bring_up(access, VERSION, (*STEPS, Step("second", fail)))
    assert int(await access.command("HGET", "meta", "version")) == VERSION
    await bring_up(access, VERSION, (*STEPS, Step("second"), Step("third")))
    await access.call_global("raise_version", (VERSION + 1, False))
    assert int(await access.command("HGET", "meta", "version")) == VERSION + 2
    await store.close()


async def test_only_a_breaking_step_raises_the_oldest_version_and_nothing_lowers_it(tmp_path: Path) -> None:
    store = _opened(tmp_path)
    await store.migrate()
    access, oldest = store._access, list[int]()
    for version, breaking in ((VERSION + 1, False), (VERSION + 3, True), (VERSION + 2, True), (VERSION + 4, False)):
        await access.call_global("raise_version", (version, breaking))
        oldest.append(int(await access.command("HGET", "meta", "oldest")))
    assert oldest == [0, VERSION + 3, VERSION + 3, VERSION + 3]
    assert int(await access.command("HGET", "meta", "version")) == VERSION + 4
    await store.close()
