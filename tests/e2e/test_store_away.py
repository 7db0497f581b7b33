"""A server that is away when a worker starts or stops: waited for at the start, and not at the end."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import answer, free_port
from tests.support.processes import Process, Processes, children, until
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer
from windlass import App, StoreUnavailable

Server = PostgresServer | RedisServer
APP = "from windlass import App\napp = App()\n\n@app.task\ndef nothing() -> None: ...\n"
SOON = 15.0
"""Seconds: much less than the time for running jobs, 30 s, that a worker without any has no use for."""


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of the test's own."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "small.py").write_text(APP)
    made = Processes(tmp_path)
    yield made
    made.end()


def url_of(server: Server) -> str:
    return server.dsn() if isinstance(server, PostgresServer) else server.url


def start(processes: Processes, url: str) -> Process:
    return processes.start("worker", "-m", "windlass", "worker", "small:app", environment={"WINDLASS_STORE": url})


def until_ready(worker: Process) -> None:
    until(lambda: " is ready" in worker.output or worker.ended, "the worker claims")


def signal_server(server: Server, number: signal.Signals) -> None:
    """To all of its processes."""
    for pid in [server.pid, *children(server.pid)]:
        os.kill(pid, number)


@pytest.mark.parametrize("silent", [False, True])
def test_an_idle_worker_stops_soon_and_says_that_it_could_not_sign_off(
    server: Server, processes: Processes, silent: bool
) -> None:
    worker = start(processes, url_of(server))
    until_ready(worker)
    if silent:
        signal_server(server, signal.SIGSTOP)
    else:
        server.stop()
    try:
        worker.send(signal.SIGTERM)
        assert worker.wait(SOON) == 0
    finally:
        if silent:
            signal_server(server, signal.SIGCONT)
    assert "could not sign off" in worker.output
    assert " signed off" not in worker.output


def test_at_the_start_it_is_waited_for_and_that_is_reported_once(server: Server, processes: Processes) -> None:
    server.stop()
    worker = start(processes, url_of(server))
    until(lambda: "failed, trying again" in worker.output, "the worker says that it waits")
    server.start()
    until_ready(worker)
    assert worker.output.count("failed, trying again") == 1
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert " signed off" in worker.output


def test_a_worker_that_waits_for_it_at_the_start_stops_at_once(server: Server, processes: Processes) -> None:
    server.stop()
    worker = start(processes, url_of(server))
    until(lambda: "failed, trying again" in worker.output, "the worker says that it waits")
    worker.send(signal.SIGTERM)
    assert worker.wait(SOON) == 0


def test_a_database_that_is_not_there_ends_the_start(server: Server, processes: Processes) -> None:
    wrong = server.dsn("nowhere") if isinstance(server, PostgresServer) else server.url.rpartition("/")[0] + "/9999"
    worker = start(processes, wrong)
    assert worker.wait() == 1
    said = "does not exist" if isinstance(server, PostgresServer) else "out of range"
    assert said in worker.output.splitlines()[-1]
    assert "Traceback" not in worker.output


def test_a_worker_without_its_store_is_alive_and_not_ready(server: Server, processes: Processes) -> None:
    health = f"127.0.0.1:{(port := free_port())}"
    environment = {"WINDLASS_STORE": url_of(server)}
    options = ["--health", health, "--lease", "2s"]
    worker = processes.start("worker", "-m", "windlass", "worker", "small:app", *options, environment=environment)
    until(lambda: answer(port, "/readyz") == 200, "the worker is ready")
    signal_server(server, signal.SIGSTOP)
    try:
        until(lambda: answer(port, "/readyz") == 503, "its leases are over")
        assert answer(port, "/healthz") == 200
    finally:
        signal_server(server, signal.SIGCONT)
    until(lambda: answer(port, "/readyz") == 200, "it goes on by itself")
    assert not worker.ended


@pytest.mark.parametrize("silent", [False, True])
async def test_an_embedded_worker_waits_for_it_no_longer_than_the_deadline(server: Server, silent: bool) -> None:
    url = url_of(server)
    if silent:
        signal_server(server, signal.SIGSTOP)
    else:
        server.stop()
    app = App(url, deadline="500ms")
    try:
        with pytest.raises(StoreUnavailable, match=r"opening the store took longer than 0\.5 s: "):
            async with app.worker():
                raise AssertionError("it has no store")
    finally:
        if silent:
            signal_server(server, signal.SIGCONT)
