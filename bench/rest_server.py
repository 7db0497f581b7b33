"""`windlass serve` in a process of its own, a token for it, and minimal connections."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from bench.context import BenchContext
from bench.tasks import FILLER
from bench.usage import Usage, usage
from windlass.client.app import App

READY_SECONDS = 60.0
JOB = {"type": "noop", "payload": {"n": 1, "s": FILLER}}
END_OF_HEAD = b"\r\n\r\n"


class Request(msgspec.Struct, frozen=True):
    """The bytes of a request, and the status that is expected."""

    text: bytes
    status: int


class Server:
    """A running server."""

    def __init__(self, port: int, token: str, pid: int) -> None:
        self.port = port
        self.pid = pid
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def usage(self) -> Usage:
        """Its processor time and memory."""
        found = usage(self.pid)
        assert found is not None
        return found

    def request(self, method: str, path: str, status: int, body: object = None, **more: str) -> Request:
        """A request; `more` are headers."""
        text = b"" if body is None else json.dumps(body).encode()
        headers = {"host": "127.0.0.1", "content-length": str(len(text)), **self.headers, **more}
        lines = [f"{method} /api/v1{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return Request("\r\n".join(lines).encode() + END_OF_HEAD + text, status)


class Connection:
    """One kept-alive connection: a plain socket, because a full client would be measured too."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, request: Request) -> bytes:
        """The body of the answer."""
        self._socket.sendall(request.text)
        text = b""
        while END_OF_HEAD not in text:
            text += self._more()
        head, _, body = text.partition(END_OF_HEAD)
        status, length = read_head(head)
        while len(body) < length:
            body += self._more()
        if status != request.status:
            raise RuntimeError(f"{status}: {body[:200]!r}")
        return body

    def _more(self) -> bytes:
        text = self._socket.recv(1 << 20)
        if not text:
            raise ConnectionError("the server closed the connection")
        return text

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def read_head(head: bytes) -> tuple[int, int]:
    """The status and the length of an answer."""
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return int(head[9:12]), int(length)


async def send(server: Server, request_of: Callable[[int], Request], count: int, connections: int) -> list[float]:
    """Send requests over many connections at once; returns the seconds that each took, inf: a wrong answer."""
    numbers = iter(range(count))
    took: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for number in numbers:
            request, began = request_of(number), time.perf_counter()
            writer.write(request.text)
            status, length = read_head(await reader.readuntil(END_OF_HEAD))
            await reader.readexactly(length)
            took.append(time.perf_counter() - began if status == request.status else float("inf"))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client() for _ in range(connections)))
    return took


@contextmanager
def serving(context: BenchContext) -> Iterator[Server]:
    """A server of an empty store, without an app."""
    with context.store() as address, served(address) as server:
        yield server


@contextmanager
def served(address: str) -> Iterator[Server]:
    """A server of this store, in a process of its own."""
    app = App(address)
    token = app.tokens.create("bench", ["admin"]).text
    app.close()
    port = _free_port()
    words = ["serve", "--store", address, "--port", str(port), "--rate", "1000000/s", "--unready", "0s"]
    process = subprocess.Popen([sys.executable, "-m", "windlass", *words], stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield Server(port, token, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> None:
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        line = http.client.HTTPConnection("127.0.0.1", port)
        try:
            line.request("GET", "/readyz")
            if line.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.05)
        finally:
            line.close()
    raise TimeoutError("the server is not ready")
