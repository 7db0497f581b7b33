"""How many sessions a worker has on its server: at most two for each runner, and two for its supervisor."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.postgres.works.plant import Plant
from tests.support.processes import until
from windlass.store.open import open_store
from windlass.store.postgres.connection import pool
from windlass.store.records import ProcessRole


class Census:
    """The most sessions that each process ever had, as the server saw them."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._over = Event()
        self.most: Counter[str] = Counter()
        self._thread = Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        while not self._over.wait(0.01):
            self.most |= Counter(self._plant.sessions())

    def end(self) -> dict[str, set[int]]:
        """By the parts that processes have."""
        self._over.set()
        self._thread.join()
        found: dict[str, set[int]] = {}
        for name, sessions in self.most.items():
            found.setdefault(name.split()[1], set()).add(sessions)
        return found


@pytest.fixture
def census(plant: Plant) -> Iterator[Census]:
    counting = Census(plant)
    yield counting
    counting.end()


def test_under_load_with_children_from_coroutines_threads_and_cells(plant: Plant, census: Census) -> None:
    types = {"quick": 2_000, "thread": 500, "parent": 500, "thread_parent": 500, "cell_parent": 5}
    for type_, times in types.items():
        plant.enqueue(type_, times)
    plant.app.close()  # the test's own sessions are clients' too
    worker = plant.start_worker("--processes", "4", "--until-empty")
    assert worker.wait(60) == 0
    found = census.end()
    plant.check_outputs()
    assert len(plant.runs()) == 2_000 + 500 + 2 * 1_005
    assert found["supervisor"] == {2}, "one for its leases alone"
    assert max(found["runner"]) <= 2
    assert len([name for name in census.most if name.split()[1] == "runner"]) == 4
    # A cell is a process of its own, and a client like any other if its handler speaks to the store.
    assert max(found.pop("client", {0})) <= 2
    assert found.keys() == {"supervisor", "runner"}


async def test_an_idle_process_keeps_one_at_most(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    store = open_store(plant.direct, opener=ProcessRole.RUNNER)
    await asyncio.gather(*(store.operator.counts() for _ in range(10)))
    assert len([name for name in plant.sessions() if "runner" in name]) == 2
    async with asyncio.timeout(10):
        while len([name for name in plant.sessions() if "runner" in name]) > 1:
            await store.operator.counts()  # as an idle runner looks for work
            await asyncio.sleep(0.05)
    no_runner = lambda: not [name for name in plant.sessions() if "runner" in name]  # noqa: E731
    await asyncio.to_thread(until, no_runner, "the last one is dropped too")
    await store.close()
