"""REST: the cost of a server process between client and store, and its rate with many connections."""

import asyncio
import time

import msgspec

from bench.context import BenchContext
from bench.measures.enqueue import alone
from bench.report.figures import Base, Row, Section, Target, bars
from bench.rest_server import JOB, Connection, Server, send, serving
from bench.targets import at_most
from bench.worker import make_jobs
from windlass.client.app import App

BULK = 1_000
CONNECTIONS = 50
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


def measure(context: BenchContext) -> Section:
    """The client and the server, one after the other, round by round."""
    rates = Rates()
    for _ in context.rounds("rest"):
        rates.alone.append(alone(context))
        rates.client_bulk.append(_client_bulk(context))
        with serving(context) as server:
            _single(context, server, rates)
            rates.bulk.append(_bulk(context, server))
            _many(context, server, rates)
    return _section(context, rates)


def _single(context: BenchContext, server: Server, rates: Rates) -> None:
    jobs = context.scale.one_by_one
    line, post = Connection(server), server.request("POST", "/jobs", 201, JOB)
    line.call(post)
    used, began = server.usage().cpu, time.perf_counter()
    for _ in range(jobs):
        line.call(post)
    rates.single.append(jobs / (time.perf_counter() - began))
    rates.cpu.append(max(1.0, (server.usage().cpu - used) / jobs * 1e6))
    line.close()


def _bulk(context: BenchContext, server: Server) -> float:
    line = Connection(server)
    jobs, began = context.scale.bulk, time.perf_counter()
    for start in range(0, jobs, BULK):
        line.call(server.request("POST", "/jobs/bulk", 201, {"jobs": [JOB] * min(BULK, jobs - start)}))
    line.close()
    return jobs / (time.perf_counter() - began)


def _client_bulk(context: BenchContext) -> float:
    """The same number per call, by the client."""
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
    """Enqueues over many connections."""
    post = server.request("POST", "/jobs", 201, JOB)
    took = sorted(asyncio.run(send(server, lambda _: post, context.scale.coroutines, CONNECTIONS)))
    rates.median.append(took[len(took) // 2] * 1000)
    rates.worst.append(took[min(len(took) - 1, len(took) * 99 // 100)] * 1000)
    rates.errors.append(float(took.count(float("inf"))))


def _section(context: BenchContext, rates: Rates) -> Section:
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
    ]
    return Section(
        name="rest",
        title=f"REST: {context.scale.one_by_one:,} requests one by one, {context.scale.bulk:,} jobs in bulk",
        rows=[*rows, *many],
        charts=[bars("Jobs per second, by REST and by the client", rows)],
        notes=["The server is a process of its own, on loopback without TLS, without an app. A token is checked."],
    )
