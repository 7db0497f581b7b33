"""REST: what a server in a process of its own adds to the client's enqueues, and how it bears many connections."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bench.context import BenchContext
from bench.measures.enqueue import alone
from bench.report.figures import Base, Row, Section, Target, bars
from bench.targets import at_most
from bench.tasks import FILLER
from bench.usage import usage
from bench.worker import make_jobs
from windlass.client.app import App

BULK = 1_000
CONNECTIONS = 50
READY_SECONDS = 60.0
JOB = {"type": "noop", "payload": {"n": 1, "s": FILLER}}
UNIT = "jobs/s"


class Rates(msgspec.Struct):
    """Of each round."""

    single: list[float] = []
    alone: list[float] = []
    bulk: list[float] = []
    client_bulk: list[float] = []
    median: list[float] = []
    worst: list[float] = []
    errors: list[float] = []
    cpu: list[float] = []
    memory_early: list[float] = []
    memory_late: list[float] = []


class Server:
    """A running server and a token for it."""

    def __init__(self, port: int, token: str, pid: int) -> None:
        self.port = port
        self.pid = pid
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def cpu(self) -> float:
        """Seconds of its processor time."""
        found = usage(self.pid)
        assert found is not None
        return found.cpu

    def megabytes(self) -> float:
        """Its memory."""
        found = usage(self.pid)
        assert found is not None
        return found.resident / 1e6

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The bytes of a request."""
        headers = {"host": "bench", "content-length": str(len(body)), **self.headers}
        lines = [f"{method} /api/v1{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


def measure(context: BenchContext) -> Section:
    """The client and the server, one after the other, round by round."""
    rates = Rates()
    for _ in context.rounds("rest"):
        rates.alone.append(alone(context))
        rates.client_bulk.append(_client_bulk(context))
        with context.store() as address, served(address) as server:
            _single(context, server, rates)
            rates.bulk.append(_bulk(context, server))
            _many(context, server, rates)
    return _section(context, rates)


@contextmanager
def served(address: str) -> Iterator[Server]:
    """A server in a process of its own."""
    app = App(address)
    token = app.tokens.create("bench", ["admin"]).text
    app.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["serve", "--store", address, "--port", str(port), "--rate", "1000000/s", "--unready", "0s"]
    process = subprocess.Popen([sys.executable, "-m", "windlass", *words], stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield Server(port, token, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _wait(port: int) -> None:
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        try:
            line = http.client.HTTPConnection("127.0.0.1", port)
            line.request("GET", "/readyz")
            if line.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.05)
        finally:
            line.close()
    raise TimeoutError("the server is not ready")


def _single(context: BenchContext, server: Server, rates: Rates) -> None:
    jobs = context.scale.one_by_one
    line = http.client.HTTPConnection("127.0.0.1", server.port)
    body = json.dumps(JOB).encode()
    _post(line, server, "/jobs", body)
    used, began = server.cpu(), time.perf_counter()
    for _ in range(jobs):
        _post(line, server, "/jobs", body)
    rates.single.append(jobs / (time.perf_counter() - began))
    rates.cpu.append(max(1.0, (server.cpu() - used) / jobs * 1e6))
    line.close()


def _post(line: http.client.HTTPConnection, server: Server, path: str, body: bytes) -> None:
    line.request("POST", f"/api/v1{path}", body, server.headers)
    answer = line.getresponse()
    answer.read()
    if answer.status != 201:
        raise RuntimeError(f"{path}: {answer.status}")


def _bulk(context: BenchContext, server: Server) -> float:
    line = http.client.HTTPConnection("127.0.0.1", server.port)
    jobs, began = context.scale.bulk, time.perf_counter()
    for start in range(0, jobs, BULK):
        body = json.dumps({"jobs": [JOB] * min(BULK, jobs - start)}).encode()
        _post(line, server, "/jobs/bulk", body)
    line.close()
    return jobs / (time.perf_counter() - began)


def _client_bulk(context: BenchContext) -> float:
    """The same number to a call, by the client."""
    with context.store() as address:
        app = App(context.route(address))
        app.stats.counts()
        jobs, began = context.scale.bulk, time.perf_counter()
        for start in range(0, jobs, BULK):
            app.enqueue_many(make_jobs(min(BULK, jobs - start)))
        rate = jobs / (time.perf_counter() - began)
        app.close()
        return rate


def _many(context: BenchContext, server: Server, rates: Rates) -> None:
    """Enqueues, then reads, over many connections; the reads also show whether memory grows."""
    post = server.request("POST", "/jobs", json.dumps(JOB).encode())
    took, failed = asyncio.run(_clients(server, post, context.scale.coroutines))
    rates.median.append(took[len(took) // 2] * 1000)
    rates.worst.append(took[min(len(took) - 1, len(took) * 99 // 100)] * 1000)
    get = server.request("GET", "/jobs?limit=5")
    _, early = asyncio.run(_clients(server, get, context.scale.drain // 5))
    rates.memory_early.append(server.megabytes())
    _, late = asyncio.run(_clients(server, get, context.scale.drain))
    rates.memory_late.append(server.megabytes())
    rates.errors.append(failed + early + late)


async def _clients(server: Server, request: bytes, count: int) -> tuple[list[float], int]:
    """How long each of the answers took, in order, and how many were errors."""
    took: list[float] = []
    failed = 0

    async def client() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(max(1, count // CONNECTIONS)):
            began = time.perf_counter()
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            took.append(time.perf_counter() - began)
            failed += not head.startswith(b"http/1.1 20")
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return sorted(took), failed


def _section(context: BenchContext, rates: Rates) -> Section:
    reads = context.scale.drain
    rows = [
        Row(
            name="POST /jobs, one connection",
            unit=UNIT,
            rounds=rates.single,
            base=Base("the client, one by one", rates.alone),
            target=Target(0.5),
        ),
        Row(
            name=f"POST /jobs/bulk, {BULK:,} to a call",
            unit=UNIT,
            rounds=rates.bulk,
            base=Base("the client, as many to a call", rates.client_bulk),
            target=Target(0.6),
        ),
    ]
    many = [
        Row(
            name=f"p99, {CONNECTIONS} connections",
            unit="ms",
            rounds=rates.worst,
            base=Base("their median", rates.median),
            target=at_most(5.0),
        ),
        Row(name="errors", unit="answers", rounds=rates.errors, target=at_most(0.0)),
        Row(name="processor of the server", unit="us per POST", rounds=rates.cpu),
        Row(
            name=f"memory after {reads:,} reads",
            unit="MB",
            rounds=rates.memory_late,
            base=Base("before them", rates.memory_early),
            target=at_most(1.1),
        ),
    ]
    return Section(
        name="rest",
        title=f"REST: {context.scale.one_by_one:,} requests one by one, {context.scale.bulk:,} jobs in bulk",
        rows=[*rows, *many],
        charts=[bars("Jobs per second, by REST and by the client", rows)],
        notes=["The server is a process of its own, on loopback without TLS, without an app. A token is checked."],
    )
