"""The store in memory: one process, one store, no trace."""

import asyncio
from pathlib import Path

import pytest

from tests.support.seed import enqueue, enqueue_one
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import MEMORY_ADDRESS, missing, open_memory, open_store


@pytest.mark.parametrize("address", [MEMORY_ADDRESS, "sqlite://:memory:", "sqlite:///:memory:?durability=relaxed"])
def test_it_cannot_be_opened_by_an_address(address: str) -> None:
    with pytest.raises(ConfigError, match=r"no other process sees.*sqlite:///jobs.db.*App.testing\(\)"):
        open_store(address)
    with pytest.raises(ConfigError, match="no other process sees"):
        missing(address)


def test_it_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_memory()
    store.leases.hold_liveness_lock("somebody")
    asyncio.run(enqueue_one(store))
    assert list(tmp_path.iterdir()) == []
    asyncio.run(store.close())
    assert list(tmp_path.iterdir()) == []


async def test_two_of_them_share_nothing() -> None:
    first, second = open_memory(), open_memory()
    await enqueue(first, 3)
    assert (await second.operator.counts()).queues == {}
    assert first.address == second.address == MEMORY_ADDRESS
    await first.close()
    await second.close()


async def test_reads_and_writes_of_many_at_once_never_find_it_locked() -> None:
    store = open_memory()
    hints = asyncio.create_task(watch(store))
    await asyncio.gather(*(enqueue_one(store) if n % 2 else store.operator.counts() for n in range(300)))
    hints.cancel()
    assert (await store.operator.counts()).totals["pending"] == 150
    await store.close()


async def watch(store: Store) -> None:
    """Look for hints without end."""
    while True:
        await store.signals.wait(store.signals.cursor(), 0.01)


def test_it_serves_several_event_loops_one_after_the_other() -> None:
    store = open_memory()
    for _ in range(3):
        asyncio.run(enqueue_one(store))
    assert asyncio.run(store.operator.counts()).totals["pending"] == 3
    asyncio.run(store.close())
    with pytest.raises(StoreUnavailable, match="closed"):
        asyncio.run(store.operator.counts())
