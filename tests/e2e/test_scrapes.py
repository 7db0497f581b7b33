"""A scrape while the store stands still: it is answered, and says that the store is away."""

import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.stage import answer, free_port
from tests.support.processes import Processes, children, until
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer
from windlass import App

Server = PostgresServer | RedisServer
APP = "from windlass import App\napp = App()\n\n@app.task\ndef nothing() -> None: ...\n"
MARGIN = 4.0
"""Seconds for a busy machine, besides the one that a scrape waits; without a bound it would wait until the thaw."""


@pytest.fixture(params=["postgres", pytest.param("redis", marks=pytest.mark.extended)])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of the test's own."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def processes(server: Server, tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "small.py").write_text(APP)
    made = Processes(tmp_path, {"WINDLASS_STORE": url_of(server)})
    yield made
    made.end()


def url_of(server: Server) -> str:
    return server.dsn() if isinstance(server, PostgresServer) else server.url


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    pids = [server.pid, *children(server.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


class Target:
    """A process that is scraped."""

    def __init__(self, port: int, token: str) -> None:
        self._request = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics", headers={"authorization": f"Bearer {token}"}
        )
        self.longest = 0.0

    def scrape(self) -> str:
        begin = time.monotonic()
        with urllib.request.urlopen(self._request, timeout=30) as response:
            text: str = response.read().decode()
        self.longest = max(self.longest, time.monotonic() - begin)
        return text


def test_scrapes_are_answered_while_the_store_is_stopped(server: Server, processes: Processes) -> None:
    ports = {"serve": free_port(), "coordinator": free_port(), "worker": free_port()}
    health = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    processes.start("serve", "-m", "windlass", "serve", "small:app", "--port", str(ports["serve"]))
    processes.start("coordinator", "-m", "windlass", "coordinator", "--health", health["coordinator"])
    processes.start("worker", "-m", "windlass", "worker", "small:app", "--health", health["worker"])
    until(lambda: all(answer(port, "/readyz") == 200 for port in ports.values()), "all are ready")
    app = App(url_of(server))
    token = app.tokens.create("prometheus", ["read"]).text
    app.close()
    targets = {name: Target(port, token) for name, port in ports.items()}
    of_store = [targets["serve"], targets["coordinator"]]
    assert all("windlass_store_up 1" in each.scrape() for each in of_store)
    with frozen(server):
        for _ in range(3):
            for each in of_store:
                text = each.scrape()
                assert "windlass_store_up 0" in text
                assert "windlass_build_info" in text
                assert "windlass_queue_jobs{" not in text
            assert "windlass_slots 10" in targets["worker"].scrape()
    print({name: each.longest for name, each in targets.items()})
    assert max(each.longest for each in targets.values()) < 1 + MARGIN
    until(lambda: all("windlass_store_up 1" in each.scrape() for each in of_store), "the store is seen again")
