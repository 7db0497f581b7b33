"""Requests: the memory of a server over very many requests of every kind."""

import asyncio
import uuid
from collections.abc import Callable

from bench.context import BenchContext
from bench.measures.memory import FLAT, MIB
from bench.report.figures import Base, Line, Lines, Row, Section
from bench.rest_server import JOB, Connection, Request, Server, send, serving
from bench.targets import at_most

CONNECTIONS = 20
SAMPLES = 50


def measure(context: BenchContext) -> Section:
    """One server; its memory is read after each 1/50 of the requests."""
    count = context.scale.requests
    each = max(CONNECTIONS, count // SAMPLES)
    wrong, curve = 0, []
    with serving(context) as server:
        request_of = _mixture(server)
        for done in range(each, count + 1, each):
            took = asyncio.run(send(server, request_of, each, CONNECTIONS))
            wrong += took.count(float("inf"))
            curve.append((float(done), server.usage().resident / MIB))
            context.progress(f"requests: {done:,} of {count:,}, {curve[-1][1]:.1f} MiB")
    early = Base("after a tenth of them", [curve[len(curve) // 10][1]])
    rows = [
        Row(name="memory after the first requests", unit="MiB", rounds=[curve[0][1]]),
        Row(name=f"memory after {count:,} requests", unit="MiB", rounds=[curve[-1][1]], base=early, target=FLAT),
        Row(name="wrong answers", unit="answers", rounds=[float(wrong)], target=at_most(0.0)),
    ]
    return Section(
        name="requests",
        title=f"Requests: the memory of a server over {count:,} of them",
        rows=rows,
        charts=[Lines("Resident memory of the server", "requests", "MiB", [Line("Windlass", curve)])],
        notes=[
            f"{CONNECTIONS} connections. Of twenty requests eight enqueue a job, one of them with an "
            "Idempotency-Key, eight read a job or a queue, one lists jobs, and three are refused."
        ],
    )


def _mixture(server: Server) -> Callable[[int], Request]:
    """The request with each number."""
    post = server.request("POST", "/jobs", 201, JOB)
    first = Connection(server)
    id_ = first.call(post).partition(b'"id":"')[2][:36].decode()
    first.close()
    read = server.request("GET", f"/jobs/{id_}", 200)
    bad = server.request("POST", "/jobs", 422, {"type": 1})
    turn = [
        *([post, read] * 7),
        server.request("GET", "/queues/default", 200),
        server.request("GET", "/jobs?limit=5", 200),
        *(bad, bad),
        server.request("GET", "/jobs/unknown", 404),
    ]

    def request_of(number: int) -> Request:
        place = number % (len(turn) + 1)
        return turn[place] if place < len(turn) else server.request("POST", "/jobs", 201, JOB, **_fresh_key())

    return request_of


def _fresh_key() -> dict[str, str]:
    return {"idempotency-key": uuid.uuid4().hex}
