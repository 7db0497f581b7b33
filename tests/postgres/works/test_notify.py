"""NOTIFY: who is woken by it, how often it is said, and that nothing depends on it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.postgres.works.plant import Plant
from tests.support.clock import ManualClock
from tests.support.processes import until
from tests.support.seed import new_job
from windlass import App
from windlass.core.hints import HINT_RATE
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.connection import hints
from windlass.store.records import ProcessRole

CHANNEL = "windlass.windlass"


@contextlib.asynccontextmanager
async def listening(url: str) -> AsyncIterator[list[tuple[float, str]]]:
    """What a listener of the test's own hears: when, and of which queue."""
    heard: list[tuple[float, str]] = []

    def hear(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        heard.append((time.monotonic(), str(payload)))

    connection: Any = await asyncpg.connect(url)
    await connection.add_listener(CHANNEL, hear)
    yield heard
    await connection.remove_listener(CHANNEL, hear)
    await connection.close()


def test_an_enqueue_of_another_process_wakes_an_idle_worker_sooner_than_polling_does(plant: Plant) -> None:
    """Compared with a worker that only polls, by what each of a few jobs had to wait in the store."""
    waited = {}
    for number, url in enumerate((plant.url, f"{plant.url}?notify=off"), 1):
        worker = plant.worker(url=url)
        ids = []
        for done in range(4):
            time.sleep(0.3)  # idle runners look ever more rarely
            ids += plant.enqueue("quick", 1)
            plant.until_completed(4 * (number - 1) + done + 1)
        plant.stop([worker])
        jobs = [plant.app.jobs.get(id_) for id_ in ids]
        waited[url] = sum((job.claimed_at - job.created_at).total_seconds() for job in jobs if job.claimed_at)
    woken, polled = waited.values()
    assert woken < polled
    assert "no hints wake this worker (the store's address says ?notify=off)" in worker.output


async def test_hints_are_rare_while_jobs_come_one_by_one_and_the_last_sends_one(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock of its own, on which jobs come at four times the rate of hints, however long they take."""
    jobs, clock = 1_000, ManualClock()
    monkeypatch.setattr(hints, "since_boot", clock.since_boot)
    app = App(plant.direct)
    async with listening(plant.direct) as heard:
        for _ in range(jobs):
            clock.advance(SECOND // HINT_RATE.tokens // 4)
            await app.aenqueue_many([new_job(type="quick")])
        last = time.monotonic()
        clock.advance(SECOND // HINT_RATE.tokens)
        await asyncio.to_thread(until, lambda: heard[-1][0] > last, "the last jobs are reported")
    await app.aclose()
    assert {queue for _, queue in heard} == {"default"}
    reported = HINT_RATE.burst + jobs // 4
    assert reported - 1 <= len(heard) <= reported + 1, "a burst at once, and then no more than the rate"


async def test_a_hint_of_a_transaction_that_is_rolled_back_is_not_heard(plant: Plant) -> None:
    app = App(plant.direct)
    async with listening(plant.direct) as heard:
        async with await psycopg.AsyncConnection.connect(plant.direct) as theirs:
            await app.aenqueue_many([new_job(type="quick")], connection=theirs)
            await theirs.rollback()
            await app.aenqueue_many([new_job(type="quick", queue="other")], connection=theirs)
            await theirs.commit()
        await asyncio.to_thread(until, lambda: heard, "the second is heard")
    await app.aclose()
    assert [queue for _, queue in heard] == ["other"]


def test_only_the_supervisor_listens_and_a_lost_hint_only_delays(plant: Plant) -> None:
    worker = plant.worker("--processes", "2")
    ids = plant.enqueue("quick", 100)
    plant.until_completed(100)
    # The last thing that a listener ran is visible only until the next, so the server is asked who would get it:
    # each session is named by its part, and no runner's has ever said LISTEN.
    names = {name.split()[1] for name in plant.sessions()}
    assert names >= {"supervisor", "runner"}
    for (pid,) in plant.ask("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'windlass supervisor%'"):
        plant.ask("SELECT pg_terminate_backend(%s)", pid)
    ids += plant.enqueue("quick", 1)
    plant.until_completed(101)
    until(lambda: [name for name in plant.sessions() if "supervisor" in name], "the supervisor is back")
    plant.stop([worker])
    assert sorted(plant.runs()) == sorted(ids)


async def _opened(url: str, opener: ProcessRole) -> Store:
    store = open_store(url, opener=opener)
    await store.migrate()
    return store


async def test_a_supervisor_hears_of_its_own_queues_only(plant: Plant) -> None:
    supervisor = await _opened(plant.direct, ProcessRole.SUPERVISOR)
    client = await _opened(plant.direct, ProcessRole.CLIENT)
    assert supervisor.signals.outage is None
    supervisor.signals.subscribe(["default"])
    mark = supervisor.signals.cursor()
    await client.jobs.enqueue([new_job(type="quick", queue="other")])
    assert not await supervisor.signals.wait(mark, 0.5)
    await client.jobs.enqueue([new_job(type="quick", queue="default")])
    assert await supervisor.signals.wait(mark, 10)
    mark = supervisor.signals.cursor()
    await client.queues.pause("other", None)
    await client.queues.resume("other")  # it names no queue: it concerns every worker
    assert await supervisor.signals.wait(mark, 10)
    await supervisor.close()
    await client.close()


async def test_a_runner_does_not_listen(plant: Plant) -> None:
    runner = await _opened(plant.direct, ProcessRole.RUNNER)
    client = await _opened(plant.direct, ProcessRole.CLIENT)
    mark = runner.signals.cursor()
    await client.jobs.enqueue([new_job(type="quick")])
    assert not await runner.signals.wait(mark, 0.5)
    await runner.close()
    await client.close()


async def test_a_supervisor_that_hears_nothing_of_itself_says_why(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if something on the way let LISTEN pass and swallowed what comes of it."""
    monkeypatch.setattr(hints.Hints, "_on_notice", lambda *_: None)
    monkeypatch.setattr(hints, "PROBE_SECONDS", 0.1)
    supervisor = await _opened(plant.direct, ProcessRole.SUPERVISOR)
    assert supervisor.signals.outage == "something between here and the server drops notifications"
    await supervisor.close()
