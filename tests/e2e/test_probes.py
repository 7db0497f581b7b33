"""Probes and systemd's notifications of a real worker, from its start to its end."""

import signal
import socket

from tests.e2e.stage import Stage, answer, free_port
from tests.support.processes import until


def test_a_worker_tells_systemd_that_it_is_ready_and_alive_and_stops(stage: Stage) -> None:
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unit:
        unit.bind(str(stage.folder / "notify"))
        unit.settimeout(30)
        variables = {"NOTIFY_SOCKET": str(stage.folder / "notify"), "WATCHDOG_USEC": "300000"}
        worker = stage.start_worker("--health", f"127.0.0.1:{port}", environment=variables)
        until(lambda: answer(port, "/startupz") == 503, "it listens before it has started")
        assert answer(port, "/readyz") == 503
        seen = {unit.recv(100)}
        while b"READY=1" not in seen:
            seen.add(unit.recv(100))
        assert [answer(port, path) for path in ("/startupz", "/readyz", "/healthz")] == [200] * 3
        assert b"WATCHDOG=1" in seen
        blocked = stage.enqueue("block", 1, gate="gate")
        stage.until_started(blocked)
        worker.send(signal.SIGTERM)
        while unit.recv(100) != b"STOPPING=1":
            pass
        assert [answer(port, path) for path in ("/startupz", "/readyz", "/healthz")] == [200, 503, 200]
        stage.open("gate")
        assert worker.wait() == 0
