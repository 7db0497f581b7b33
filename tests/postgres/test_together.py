"""Many at once: what is read, changed and written back is locked in between, and one of many candidates wins."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, look, running, worker_info
from tests.support.stores import STORES
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import LogLine
from windlass.core.moments import SECOND, to_datetime
from windlass.core.stats.meter import Histogram, Meter
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import Campaign, Note

MANY = 8


@pytest.fixture
async def crowd(tmp_path: Path, clock: ManualClock) -> AsyncIterator[list[Store]]:
    """Several processes, as the server sees them."""
    first = STORES["postgres"].open(tmp_path, clock)
    await first.migrate()
    others = [open_store(first.address, clock=clock) for _ in range(MANY - 1)]
    yield [first, *others]
    for store in (first, *others):
        await store.close()


async def test_of_many_candidates_one_is_elected(crowd: list[Store]) -> None:
    bids = [store.leader.campaign(Campaign(f"c{i}", SECOND)) for i, store in enumerate(crowd)]
    terms = await asyncio.gather(*bids)
    assert sorted(terms, key=str) == [1] + [None] * (MANY - 1)


async def test_what_the_code_declares_and_what_operators_change_at_once_all_stays(crowd: list[Store]) -> None:
    names = [f"q{i}" for i in range(5)]
    declared = {name: QueueSettings(max_attempts=7) for name in names}
    backwards = dict(reversed(declared.items()))
    work: list[Awaitable[object]] = [
        store.queues.declare(backwards if i % 2 else declared) for i, store in enumerate(crowd)
    ]
    work += [crowd[i % MANY].queues.pause(name, None) for i, name in enumerate(names)]
    work += [crowd[-1 - i].queues.change(name, QueueSettings(timeout=30 * SECOND)) for i, name in enumerate(names)]
    await asyncio.gather(*work)
    for queue in await crowd[0].queues.list():
        assert queue.paused
        assert (queue.declared.max_attempts, queue.changed.timeout) == (7, 30 * SECOND)


async def test_no_measurement_is_lost(crowd: list[Store]) -> None:
    meters = [
        Meter(interval_start=0, queue="q", type=f"t{i}", completed=1, wait=Histogram({i: 1}), run=Histogram({5: 2}))
        for i in range(6)
    ]
    work = [store.stats.record(meters if i % 2 else meters[::-1]) for i, store in enumerate(crowd)]
    work += [store.stats.record([meters[0], meters[0]]) for store in crowd]
    await asyncio.gather(*work)
    found = {meter.type: meter for meter in (await crowd[0].stats.recent(SECOND)).meters}
    assert [found[f"t{i}"].completed for i in range(6)] == [3 * MANY] + [MANY] * 5
    assert found["t0"].wait.bins == {0: 3 * MANY}
    assert found["t3"].run.bins == {5: 2 * MANY}


async def test_notes_of_one_job_from_many_callers_are_all_kept(crowd: list[Store]) -> None:
    jobs = [await running(crowd[0]) for _ in range(3)]

    def said(job_number: int, text: str) -> Note:
        job = jobs[job_number]
        return Note(
            id=job.id, queue=job.queue, attempt=job.attempt, lines=(LogLine(at=to_datetime(0), text=text, attempt=1),)
        )

    async def say(store: Store, name: str) -> None:
        order = (0, 1, 2) if name in "aceg" else (2, 1, 0)
        await store.jobs.note([said(number, name) for number in order])

    await asyncio.gather(*(say(store, name) for store, name in zip(crowd, "abcdefgh", strict=True)))
    for job in jobs:
        assert sorted(line.text for line in (await look(crowd[0], job.id)).logs) == list("abcdefgh")


async def test_parked_jobs_come_back_once_however_many_workers_know_them(crowd: list[Store]) -> None:
    await crowd[0].workers.beat(worker_info("w0", types=("known",)))
    await enqueue(crowd[0], 50, type="strange")
    parked = await asyncio.gather(*(store.jobs.park() for store in crowd))
    assert sum(each.get("strange", 0) for each in parked) == 50
    await asyncio.gather(
        *(store.workers.beat(worker_info(f"w{i}", types=("strange",))) for i, store in enumerate(crowd))
    )
    assert (await crowd[0].operator.counts()).totals["pending"] == 50
