"""The health port: ok or not, and nothing for a bad request."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from windlass.worker.supervisor import health
from windlass.worker.supervisor.health import MAX_REQUEST_LENGTH, Health


class Probe:
    """A worker's health, and a client that asks."""

    def __init__(self) -> None:
        self.ready = True
        self.health = Health(lambda: self.ready)
        self.port = 0

    async def send(self, request: bytes) -> bytes:
        """What comes back until the line is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        async with asyncio.timeout(10):
            try:
                answer = await reader.read()
            except ConnectionResetError:
                answer = b""
        writer.close()
        return answer

    async def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        """A status and a body."""
        answer = await self.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert f"Content-Length: {len(body)}" in head
        return int(head.split()[1]), body


@pytest.fixture
async def probe() -> AsyncIterator[Probe]:
    """Listening on a free port."""
    made = Probe()
    made.port = await made.health.start("127.0.0.1", 0)
    yield made
    await made.health.stop()


async def test_alive_and_ready(probe: Probe) -> None:
    assert [await probe.get("/healthz"), await probe.get("/readyz")] == [(200, "ok\n"), (200, "ok\n")]


async def test_alive_and_not_ready(probe: Probe) -> None:
    probe.ready = False
    assert [await probe.get("/healthz"), await probe.get("/readyz")] == [(200, "ok\n"), (503, "not ok\n")]


async def test_started_is_what_was_given_and_else_alive() -> None:
    reported = Health(lambda: True, started=lambda: False)
    assert b" 503 " in (await reported._answer(b"GET /startupz HTTP/1.1\r\n\r\n")).splitlines()[0]
    assert b" 200 " in (await Health(lambda: False)._answer(b"GET /startupz HTTP/1.1\r\n")).splitlines()[0]


async def test_metrics_get_the_formats_that_the_caller_accepts() -> None:
    async def metrics(accept: str) -> tuple[str, bytes]:
        return "text/x", accept.encode()

    port = Health(lambda: True, metrics=metrics)
    answer = await port._answer(b"GET /metrics HTTP/1.1\r\nHost: x\r\nACCEPT: a/b; c=1\r\n\r\n")
    assert answer.endswith(b"Content-Type: text/x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n a/b; c=1")


async def test_ready_is_asked_anew_each_time(probe: Probe) -> None:
    answers = []
    for probe.ready in (False, True, False):
        answers.append((await probe.get("/readyz?verbose=1"))[0])
    assert answers == [503, 200, 503]


@pytest.mark.parametrize("path", ["/", "/metrics", "/scale", "/healthz/", "/../healthz", "*"])
async def test_there_is_nothing_else(probe: Probe, path: str) -> None:
    assert (await probe.get(path))[0] == 404


async def test_only_looking_is_allowed(probe: Probe) -> None:
    assert [(await probe.get("/healthz", method))[0] for method in ("POST", "DELETE", "PUT")] == [405] * 3


@pytest.mark.parametrize("request_", [b"GET\r\n\r\n", b"\r\n\r\n", b"\xff\xfe \x00 x\r\n\r\n"])
async def test_nonsense_is_answered_with_not_found(probe: Probe, request_: bytes) -> None:
    assert b" 404 " in (await probe.send(request_)).splitlines()[0]


async def test_a_request_that_is_too_long_gets_no_answer(probe: Probe) -> None:
    assert await probe.send(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 4 * MAX_REQUEST_LENGTH) == b""
    assert (await probe.get("/healthz"))[0] == 200


async def test_a_silent_client_is_cut_off(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SECONDS", 0.05)
    assert await probe.send(b"GET /heal") == b""


async def test_idle_connections_keep_no_other_out(probe: Probe) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", probe.port) for _ in range(50)]
    assert (await probe.get("/healthz"))[0] == 200
    for _, writer in idle:
        writer.close()


async def test_a_stopped_one_listens_no_more(probe: Probe) -> None:
    await probe.health.stop()
    with pytest.raises(OSError, match=r"[Cc]onnect"):
        await probe.send(b"")


async def test_one_that_never_started_stops_too() -> None:
    health = Health(lambda: True)
    await health.stop()
    assert await health.start("127.0.0.1", 0) > 0, "it may start yet"
    await health.stop()
