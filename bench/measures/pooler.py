"""Pooler: the cost of a pooler between Windlass and its server."""

import msgspec

from bench.context import BenchContext
from bench.measures import drain, enqueue, latency
from bench.measures.latency import LatencyRounds
from bench.report.figures import Bars, Base, Lines, Row, Section, bars

UNIT = "jobs/s"
TITLE = "Pooler: through PgBouncer in transaction mode, and directly"


class RouteRates(msgspec.Struct):
    """The rates of one route, by round."""

    drain: list[float] = []
    alone: list[float] = []
    idle: LatencyRounds = msgspec.field(default_factory=LatencyRounds)


def measure(context: BenchContext) -> Section:
    """The same three measurements directly and through the pooler, alternately."""
    with context.store_bench.pooler() as pooler:
        if pooler.route is None:
            return Section(name="pooler", title=TITLE, rows=[], charts=[], notes=[f"Not run: {pooler.skip_reason}."])
        direct, pooled = RouteRates(), RouteRates()
        for _ in context.rounds("pooler"):
            for way, there in ((direct, context), (pooled, msgspec.structs.replace(context, route=pooler.route))):
                way.drain.append(drain.drain(there)[0])
                way.alone.append(enqueue.alone(there))
                latency.watch(there, way.idle)
    return _section(direct, pooled)


def _section(direct: RouteRates, pooled: RouteRates) -> Section:
    work = [
        _row("drain, one runner", UNIT, pooled.drain, direct.drain),
        _row("enqueue, one by one", UNIT, pooled.alone, direct.alone),
    ]
    idle = [
        _row("enqueue to start, idle: median", "ms", pooled.idle.median, direct.idle.median),
        _row("enqueue to start, idle: p99", "ms", pooled.idle.worst, direct.idle.worst),
        _row("processor while idle", "% of a core", pooled.idle.idle, direct.idle.idle),
    ]
    charts: list[Bars | Lines] = [bars("Jobs per second, through PgBouncer and directly", work)]
    return Section(name="pooler", title=TITLE, rows=[*work, *idle], charts=charts, notes=NOTES)


def _row(name: str, unit: str, pooled: list[float], direct: list[float]) -> Row:
    return Row(name=f"{name}, pooled", unit=unit, rounds=pooled, base=Base(f"{name}, direct", direct))


NOTES = [
    "PgBouncer with its default pool of 20 connections, on the same machine; worker and producer both go through it.",
    "Through it no statement stays prepared, every verb is framed by BEGIN and COMMIT, and no notification arrives: "
    "an idle runner polls at least once a second.",
]
