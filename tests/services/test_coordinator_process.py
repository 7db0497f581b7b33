"""`windlass coordinator`, from its start to a signal."""

import asyncio
from typing import Any

import pytest

from tests.services.parts import Listener
from windlass import App
from windlass.store.contract import Store
from windlass.worker.coordinator import coordinate


async def test_a_coordinator_that_is_stopped_while_the_store_is_away_ends_in_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops: list[Any] = []
    monkeypatch.setattr("windlass.worker.coordinator.open_store", lambda *_, **__: store)
    monkeypatch.setattr("windlass.worker.coordinator.on_stop_signals", stops.append)
    monkeypatch.setattr("windlass.worker.supervisor.side_tasks.RESIGN_SECONDS", 0.01)
    monkeypatch.setattr(store.leader, "resign", lambda _: asyncio.Event().wait())
    listener = Listener()
    leading = asyncio.create_task(coordinate(App("sqlite:///never-opened.db"), None, listener))
    async with asyncio.timeout(20):
        while "LeadershipGained" not in listener.names:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        stops[0]()
    ended, _ = await asyncio.wait([leading], timeout=20)
    assert ended == {leading}
