"""A server that is away for longer than a lease, while runners have free slots: no running job is started again."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.works.plant import Plant
from tests.support.processes import let_pass, until
from tests.support.servers.postgres import Mode, PostgresServer, new_server
from windlass.store.open import open_store

LEASE = 1.0
JOBS = 12
FLAPS = 2


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    made = new_server()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def own(tmp_path: Path, server: PostgresServer) -> Iterator[Plant]:
    """Workers on a server that the test may stop."""
    made = Plant(tmp_path, server.dsn())
    yield made
    made.close()


def test_running_jobs_with_slots_free_are_started_once(own: Plant, server: PostgresServer) -> None:
    own.worker("--lease", f"{LEASE}s", "--processes", "2", "--concurrency", "20")
    ids = own.enqueue("linger", JOBS, json.dumps({"until": "go"}))
    until(lambda: len(own.runs()) == JOBS, "all of them run")
    server.stop()
    let_pass(2 * LEASE)
    server.start()
    _check_once(own, ids)


def test_running_jobs_are_started_once_though_the_server_comes_and_goes(own: Plant, server: PostgresServer) -> None:
    """Each time it is back for so short that a coordinator looks for lapsed leases, and no renewal gets through."""
    worker = own.worker("--lease", f"{LEASE}s", "--processes", "2", "--concurrency", "20")
    ids = own.enqueue("linger", JOBS, json.dumps({"until": "go"}))
    until(lambda: len(own.runs()) == JOBS, "all of them run")
    for _ in range(FLAPS):
        server.stop(Mode.IMMEDIATE)
        let_pass(1.2 * LEASE)
        worker.send(signal.SIGSTOP)  # the supervisor alone: its runners go on
        server.start()
        asyncio.run(_rescue(server.dsn()))
        server.stop(Mode.IMMEDIATE)
        worker.send(signal.SIGCONT)
    server.start()
    _check_once(own, ids)


async def _rescue(url: str) -> None:
    store = open_store(url)
    try:
        assert await store.leases.rescue(10) == []
    finally:
        await store.close()


def _check_once(own: Plant, ids: list[str]) -> None:
    let_pass(4 * LEASE)  # a lease of grace, and the time in which the jobs of the dead are put back
    (own.folder / "go").touch()
    own.until_completed(len(ids))
    assert sorted(own.runs()) == sorted(ids), "a job was started twice"
