"""Buckets: a drain with the YugabyteDB profile on PostgreSQL, by buckets and claimers, against the plain store.

Claimers are processes that claim and complete, without handlers. A snapshot is held open, so that everything that
ends stays in the indexes: the index entries that claims read show whether they step over what is dead. One drain is
of a million jobs: its last claims are at the head of as many dead ones.
"""

import asyncio
import time
from collections.abc import Iterator

import asyncpg
import msgspec

from bench.claimers import Drained, drain, tidied
from bench.context import BenchContext
from bench.report.figures import Base, Row, Section, Target
from bench.worker import fill
from windlass.bench.process import BenchFailed
from windlass.store.postgres.connection.address import parse_address

BUCKETS = (1, 4, 16)
BATCH = 100
PART = 5
"""Each drain has this part of the jobs of other drains: there are many."""
UNIT = "jobs/s"
ALONE, READ_AT_HEAD = Target(0.60), Target(3.0, at_least=False)
"""With one claimer, of the plain store; index entries per job behind the dead ones."""
ONE_SERVER = "The YugabyteDB profile on one PostgreSQL: it shows what the profile costs, not what a cluster gives."
READ = "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_pending'"


class Case(msgspec.Struct, frozen=True):
    """One kind of drain: without buckets it is the plain store."""

    claimers: int
    buckets: int | None = None
    loose: bool = False

    @property
    def name(self) -> str:
        store = "plain" if self.buckets is None else f"{self.buckets} buckets{', loose' if self.loose else ''}"
        return f"{store}, {self.claimers} claimers"

    def address(self, url: str) -> str:
        if self.buckets is None:
            return url
        options = f"profile=yugabyte&buckets={self.buckets}{'&order=loose' if self.loose else ''}"
        return f"{url}{'&' if '?' in url else '?'}{options}"


def cases(numbers: tuple[int, ...]) -> Iterator[Case]:
    """The plain store and every number of buckets, with every number of claimers."""
    for claimers in numbers:
        yield Case(claimers)
        for buckets in BUCKETS:
            yield Case(claimers, buckets)
        yield Case(claimers, max(BUCKETS), loose=True)


LARGE = Case(1, 4)
"""With a million jobs, too."""
RAISED_SECONDS = 30
"""In this time a coordinator raises the watermarks to what was claimed: it waits for transactions of 20 seconds."""


def measure(context: BenchContext) -> Section:
    """Each drain once per round, one after the other."""
    if not context.store_bench.targets.snapshots:
        return Section(name="buckets", title="Buckets", rows=[], notes=["Not run: this is for PostgreSQL."])
    jobs = context.scale.drain // PART
    found: dict[Case, list[Found]] = {case: [] for case in cases(context.scale.claimers)}
    for _ in context.rounds("buckets"):
        for case in cases(context.scale.claimers):
            found[case].append(_measured(context, case, jobs))
    rows = rows_of(found)
    large, head = _measured_at_head(context, jobs)
    name, dead = (
        f"{context.scale.memory:,} jobs, {LARGE.name}",
        f"{LARGE.name}, behind {context.scale.memory:,} dead ones",
    )
    rows += [
        Row(name=name, unit=UNIT, rounds=[large.rate]),
        Row(name=f"{name}: index entries per job", unit="", rounds=[large.read]),
        Row(name=dead, unit=UNIT, rounds=[head.rate]),
        Row(name=f"{dead}: index entries per job", unit="", rounds=[head.read], target=READ_AT_HEAD),
    ]
    return Section(
        name="buckets",
        title=f"Buckets: {jobs:,} jobs drained under a held snapshot",
        rows=rows,
        notes=[
            ONE_SERVER,
            "Index entries: also those that a coordinator reads, which looks for jobs below the watermarks from time "
            "to time; behind the dead ones claims only.",
        ],
    )


def rows_of(found: "dict[Case, list[Found]]") -> list[Row]:
    """The rates, the index entries per job, and the waits for locks."""
    rates = {case: [each.rate for each in of_case] for case, of_case in found.items()}
    rows = [
        Row(name=case.name, unit=UNIT, rounds=rates[case], base=_base(case, rates), target=_target(case))
        for case in found
    ]
    for case, of_case in found.items():
        rows.append(Row(name=f"{case.name}: index entries per job", unit="", rounds=[one.read for one in of_case]))
    for case, of_case in found.items():
        rows.append(Row(name=f"{case.name}: waits for locks", unit="", rounds=[one.waits for one in of_case]))
    return rows


def _measured(context: BenchContext, case: Case, jobs: int) -> "Found":
    context.progress(f"buckets: {case.name}, {jobs:,} jobs")
    with context.store() as url, context.holding_snapshot(url, held=True), tidied(case.address(url)):
        return measured(case, case.address(url), jobs)


def _measured_at_head(context: BenchContext, jobs: int) -> "tuple[Found, Found]":
    """A drain of many, and then one of some more: their claims begin behind the dead entries of the first."""
    context.progress(f"buckets: {LARGE.name}, {context.scale.memory:,} jobs")
    with context.store() as url, context.holding_snapshot(url, held=True):
        address = LARGE.address(url)
        with tidied(address):
            large = measured(LARGE, address, context.scale.memory)
            time.sleep(RAISED_SECONDS)
        return large, measured(LARGE, address, jobs)


def _base(case: Case, rates: dict[Case, list[float]]) -> Base | None:
    plain = Case(case.claimers)
    return None if case == plain else Base(plain.name, rates[plain])


def _target(case: Case) -> Target | None:
    return ALONE if case.claimers == 1 and case.buckets is not None else None


class Found(msgspec.Struct, frozen=True):
    """Of one drain."""

    rate: float
    read: float
    """Index entries that claims read per job."""
    waits: float
    """For locks."""


def measured(case: Case, address: str, jobs: int) -> Found:
    """Fill and drain."""
    fill(address, jobs)
    before = asyncio.run(_entries_read(address))
    drained: Drained = drain(address, case.claimers, BATCH, in_vain=1)
    if drained.jobs != jobs:
        raise BenchFailed(f"{jobs} jobs were enqueued, {drained.jobs} were completed")
    read = asyncio.run(_entries_read(address)) - before
    return Found(jobs / drained.seconds, read / jobs, float(drained.lock_waits))


async def _entries_read(address: str) -> int:
    connection = await asyncpg.connect(parse_address(address, address).dsn)
    try:
        return int(await connection.fetchval(READ))
    finally:
        await connection.close()
