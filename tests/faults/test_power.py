"""Power cuts at any moment: what was acknowledged is there afterwards, the file is sound, and work goes on."""

from pathlib import Path
from random import Random

import apsw
import pytest

from tests.faults.disk import Cut, ForgetfulDisk
from tests.faults.traffic import AfterReboot, Book, make_traffic, work_off
from tests.support.parts import in_part
from tests.support.seed import enqueue_one, status_of
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import JobFilter

CUTS = 5
SEEDS = (1, 2, 3, 4)
OPERATIONS = 6_000
"""Long enough for the log to be checkpointed and begun anew, twice."""


async def cut_power(
    folder: Path, durability: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[Cut, Book]]:
    """Traffic on a forgetful disk; each cut, with what had been acknowledged by then."""
    random, book = Random(seed), Book()
    cuts: list[tuple[Cut, Book]] = []
    # One of them while the file is being made.
    plan = [random.randint(1, 150), *random.sample(range(150, OPERATIONS), CUTS - 1)]
    disk = ForgetfulDisk(f"forgetful-{durability}-{seed}", random, plan, lambda cut: cuts.append((cut, book.copy())))
    with monkeypatch.context() as patch:
        patch.setattr(apsw, "Connection", disk.connection)
        store = open_store(f"sqlite:///{folder}/jobs.db?durability={durability}")
        await make_traffic(store, book, Random(seed), lambda: disk.done)
        await store.close()
    disk.unregister()
    return cuts


async def reopen(cut: Cut, folder: Path) -> Store:
    """The machine is started again: the file is sound before anything of ours has touched it."""
    cut.restore(folder)
    database = apsw.Connection(f"{folder}/jobs.db")
    assert database.pragma("integrity_check") == "ok"
    database.close()
    return open_store(f"sqlite:///{folder}/jobs.db", clock=AfterReboot())


async def lost(store: Store, book: Book) -> list[str]:
    """What was acknowledged and is not so: enqueues that are gone, ends that are forgotten."""
    found = {job.id: job.status for job in await store.operator.get([*book.enqueued]) if job is not None}
    missing = [id_ for id_ in book.enqueued if id_ not in found]
    return missing + [id_ for id_ in book.settled if found.get(id_) != "completed"]


async def check_works_on(store: Store) -> None:
    """Counts are a recount, what was running runs again, and new jobs are taken."""
    jobs = await store.operator.list(JobFilter(), 100_000, None)
    counts = (await store.operator.counts()).totals
    assert {status: n for status, n in counts.items() if n} == _recount([str(job.status) for job in jobs.items])
    another = await enqueue_one(store)
    assert await work_off(store) == 1 + sum(job.status != "completed" for job in jobs.items)
    assert await status_of(store, another) == "completed"
    assert (await store.operator.counts()).totals["completed"] == len(jobs.items) + 1


def _recount(statuses: list[str]) -> dict[str, int]:
    return {status: statuses.count(status) for status in set(statuses)}


@pytest.mark.parametrize("seed", in_part(SEEDS, SEEDS[:1]))
async def test_what_was_acknowledged_survives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    cuts = await cut_power(tmp_path, "full", seed, monkeypatch)
    assert len(cuts) == CUTS
    assert any(book.settled for _, book in cuts)
    assert any(cut.unsynced for cut, _ in cuts), "no cut came between a write and its sync"
    for number, (cut, book) in enumerate(cuts):
        store = await reopen(cut, tmp_path / f"cut{number}")
        try:
            assert await lost(store, book) == [], f"operation {cut.operation}, survivors: {cut.survivors}"
            await check_works_on(store)
        finally:
            await store.close()


async def test_relaxed_durability_can_lose_what_was_acknowledged_but_never_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the proof that the test above can fail."""
    cuts = await cut_power(tmp_path, "relaxed", SEEDS[0], monkeypatch)
    missing = 0
    for number, (cut, book) in enumerate(cuts):
        store = await reopen(cut, tmp_path / f"cut{number}")
        try:
            missing += len(await lost(store, book))
            await check_works_on(store)
        finally:
            await store.close()
    assert missing > 0
