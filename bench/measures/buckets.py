"""Buckets: a drain with the YugabyteDB profile on PostgreSQL, by buckets and claimers, against the plain store.

Claimers are processes that claim and complete, without handlers. A snapshot is held open, so that everything that
ends stays in the indexes: the index entries that claims read show whether they step over what is dead.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator

import asyncpg
import msgspec

from bench.context import BenchContext
from bench.report.figures import Base, Row, Section
from windlass.bench.process import BenchFailed
from windlass.core.ids import new_id
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement, completed
from windlass.core.moments import SECOND
from windlass.store.open import open_store
from windlass.store.postgres.connection.address import parse_address
from windlass.store.postgres.store import PostgresStore
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota

BUCKETS = (1, 4, 16)
CLAIMERS = (1, 4, 16)
BATCH = 100
FILL = 5_000
LEASE = 3_600 * SECOND
UNIT = "jobs/s"
READ = "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_pending'"


class Drained(msgspec.Struct):
    """What one claimer did."""

    jobs: int
    seconds: float
    lock_waits: int
    conflicts: int


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


def cases() -> Iterator[Case]:
    """The plain store and every number of buckets, with every number of claimers."""
    for claimers in CLAIMERS:
        yield Case(claimers)
        for buckets in BUCKETS:
            yield Case(claimers, buckets)
        yield Case(claimers, max(BUCKETS), loose=True)


def measure(context: BenchContext) -> Section:
    """Each drain once per round, one after the other."""
    if not context.store_bench.targets.snapshots:
        return Section(name="buckets", title="Buckets", rows=[], notes=["Not run: this is for PostgreSQL."])
    rates: dict[Case, list[float]] = {case: [] for case in cases()}
    reads: dict[Case, list[float]] = {case: [] for case in cases()}
    waits: dict[Case, list[float]] = {case: [] for case in cases()}
    for _ in context.rounds("buckets"):
        for case in cases():
            context.progress(f"buckets: {case.name}")
            with context.store() as url, context.holding_snapshot(url, held=True):
                rate, read, waited = drain(case, case.address(url), context.scale.drain)
            rates[case].append(rate)
            reads[case].append(read)
            waits[case].append(waited)
    rows = [Row(name=case.name, unit=UNIT, rounds=rates[case], base=_base(case, rates)) for case in cases()]
    rows += [Row(name=f"{case.name}: index entries per job", unit="", rounds=reads[case]) for case in cases()]
    rows += [Row(name=f"{case.name}: waits for locks", unit="", rounds=waits[case]) for case in cases()]
    return Section(
        name="buckets",
        title=f"Buckets: {context.scale.drain:,} jobs drained under a held snapshot",
        rows=rows,
        notes=[
            "The YugabyteDB profile on one PostgreSQL: it shows what the profile costs, not what a cluster gives."
        ],
    )


def _base(case: Case, rates: dict[Case, list[float]]) -> Base | None:
    plain = Case(case.claimers)
    return None if case == plain else Base(plain.name, rates[plain])


def drain(case: Case, address: str, jobs: int) -> tuple[float, float, float]:
    """Jobs per second, index entries that claims read per job, and waits for locks."""
    asyncio.run(_fill(address, jobs))
    with multiprocessing.get_context("spawn").Pool(case.claimers) as pool:
        before, began = asyncio.run(_entries_read(address)), time.perf_counter()
        drained = pool.starmap(claim_all, [(address, number) for number in range(case.claimers)])
        seconds = time.perf_counter() - began
    done = sum(each.jobs for each in drained)
    if done != jobs:
        raise BenchFailed(f"{jobs} jobs were enqueued, {done} were completed")
    read = asyncio.run(_entries_read(address)) - before
    return jobs / seconds, read / jobs, float(sum(each.lock_waits for each in drained))


def claim_all(address: str, number: int) -> Drained:
    """Claim and complete until nothing is left, in a process of its own."""
    return asyncio.run(_claim_all(address, f"runner {number}"))


async def _claim_all(address: str, runner: str) -> Drained:
    store, done, began = open_store(address), 0, time.perf_counter()
    assert isinstance(store, PostgresStore)
    await store.leases.open(LeaseRequest(runner=runner, worker=runner, length=LEASE))
    for number in range(1, 2**31):
        quotas = (QueueQuota("default", BATCH, 0),)
        jobs = await store.jobs.claim(
            ClaimRequest(runner=runner, claim=number, quotas=quotas, types=("noop",), limit=BATCH, free=None)
        )
        if not jobs:
            break
        await store.jobs.settle([_settlement(job) for job in jobs])
        done += len(jobs)
    conflicts = store._server.conflicts
    await store.close()
    return Drained(done, time.perf_counter() - began, conflicts.lock_waits, conflicts.repeated)


def _settlement(job: Claimed) -> Settlement:
    return completed(job, "null", 0)


async def _fill(address: str, jobs: int) -> None:
    store = open_store(address)
    for start in range(0, jobs, FILL):
        some = range(min(FILL, jobs - start))
        await store.jobs.enqueue([NewJob(id=new_id(), type="noop", payload="{}") for _ in some])
    await store.close()


async def _entries_read(address: str) -> int:
    connection = await asyncpg.connect(parse_address(address, address).dsn)
    try:
        return int(await connection.fetchval(READ))
    finally:
        await connection.close()
