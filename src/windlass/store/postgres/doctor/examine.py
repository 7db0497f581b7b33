"""Run all checks, whatever the others found, and take the census of the jobs. Nothing is changed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial

from windlass.core.stats.meter import METER_RETENTION
from windlass.store.clock import Clock
from windlass.store.doctor import Census, Examination, Finding, Level, Waiting, problem
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts
from windlass.store.postgres.connection.repeated_reads import pause, repeat
from windlass.store.postgres.connection.requirements import is_cluster
from windlass.store.postgres.connection.server import CONNECT_SECONDS
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import is_conflict, translate
from windlass.store.postgres.doctor.cluster import check_buckets, check_cluster, check_conflicts
from windlass.store.postgres.doctor.contents import (
    check_contents,
    check_idempotency_keys,
    check_retention,
    check_rights,
    check_schema,
)
from windlass.store.postgres.doctor.server import (
    check_connections,
    check_dead_rows,
    check_durability,
    check_notices,
    check_role,
    check_snapshots,
    check_versions,
)
from windlass.store.postgres.liveness.workers import current_leader, live_workers
from windlass.store.postgres.verbs.admit import oldest
from windlass.store.sql.schedules import all_schedules
from windlass.store.sql.stats import recent

MAX_COUNTED = 20_000
"""Jobs counted per queue, per parked type, and of all delayed ones, so that a census of millions is quick."""
MAX_RUNNERS = 1000


async def take_census(db: Db) -> Census:
    """The census, in the caller's snapshot."""
    counts = [await _pending(db), await _delayed(db), await _parked(db)]
    late = await db.rows("census_late", {"limit": MAX_RUNNERS})
    newest, dead = (await db.rows("census_totals"))[0]
    return Census(
        now=await db.now(),
        newest=newest,
        workers=tuple(await live_workers(db)),
        waiting=tuple(each for waiting, _ in counts for each in waiting),
        counted_all=all(complete for _, complete in counts),
        paused=tuple(row[0] for row in await db.rows("census_paused")),
        dead=dead,
        late_runners=len(late),
        late_jobs=sum(row[1] for row in late),
        coordinator=await current_leader(db),
        schedules=tuple(await all_schedules(db)),
        oldest=await oldest(db),
        recent=await recent(db, METER_RETENTION),
    )


Counted = tuple[list[Waiting], bool]
"""Waiting jobs, and whether all were counted."""


async def _pending(db: Db) -> Counted:
    rows = await db.rows("census_pending", {"limit": MAX_COUNTED})
    by_queue: Counter[str] = Counter()
    for queue, _, jobs in rows:
        by_queue[queue] += jobs
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=True) for queue, type_, jobs in rows]
    return waiting, all(jobs < MAX_COUNTED for jobs in by_queue.values())


async def _delayed(db: Db) -> Counted:
    """Delayed jobs and retries, by queue, type, and whether they are due."""
    rows = await db.rows("census_delayed", {"limit": MAX_COUNTED})
    waiting = [Waiting(queue=queue, type=type_, jobs=jobs, due=due) for queue, type_, due, jobs in rows]
    return waiting, sum(each.jobs for each in waiting) < MAX_COUNTED


async def _parked(db: Db) -> Counted:
    """Parked jobs, by type and queue."""
    waiting, complete, after = [], True, ""
    while rows := await db.rows("census_parked", {"after": after, "limit": MAX_COUNTED}):
        after = rows[0][0]
        waiting += [
            Waiting(queue=queue, type=type_, jobs=jobs, due=False, parked=True) for type_, queue, jobs in rows
        ]
        complete = complete and sum(row[2] for row in rows) < MAX_COUNTED
    return waiting, complete


MAX_TRIES = 30
SECONDS_TO_CHECK = 20.0
"""The time limit of a check; deep checks have none."""

Check = Callable[[Db], AsyncIterator[Finding]]
OF_POSTGRES = ("durability", "role", "vacuum")
"""Checks of settings that have no effect on YugabyteDB."""


async def examine(address: Address, shown: str, clock: Clock | None, *, deep: bool) -> Examination:
    """Examine a server, reachable or not, with the tables of Windlass or without."""
    report = Report(shown)
    try:
        session = await repeat(
            lambda: connect(address.dsn, CONNECT_SECONDS, pooled=None, profile=address.profile), Conflicts()
        )
    except Exception as error:
        advice = "check host, port, database and user of the address, and whether the server runs"
        report.findings.append(problem("server", str(translate(error, shown)), advice))
        return Examination(tuple(report.findings), None)
    try:
        texts = Texts(address.schema, clock, address.profile)
        return await _inside(address, session, Db(session, texts), report, deep=deep)
    finally:
        await session.close()


async def _inside(address: Address, session: Session, db: Db, report: "Report", *, deep: bool) -> Examination:
    of_server: dict[str, Check] = {
        "versions": check_versions,
        "durability": check_durability,
        "role": check_role,
        "connections": check_connections,
        "vacuum": check_snapshots,
    }
    if address.profile.has_buckets:
        await report.check("cluster", lambda: check_cluster(address, session), session)
    version = await repeat(lambda: session.connection.fetchval("SELECT version()"), Conflicts())
    cluster = address.profile.has_buckets and is_cluster(version)
    for name, check in of_server.items():
        if name not in OF_POSTGRES or not cluster:
            await report.check(name, partial(check, db), session)
    await report.check("wake-up", lambda: check_notices(address, session), session)
    census = None
    if await report.check("schema", lambda: check_schema(db), session):
        of_schema: dict[str, Check] = {"rights": check_rights, "retention": check_retention}
        of_schema |= {"buckets": check_buckets, "conflicts": check_conflicts} if address.profile.has_buckets else {}
        of_schema |= {} if cluster else {"vacuum": check_dead_rows}
        for name, check in of_schema.items():
            await report.check(name, partial(check, db), session)
        if deep:
            await report.check("contents", lambda: check_contents(db), session, seconds=None)
            await report.check("idempotency keys", lambda: check_idempotency_keys(db), session, seconds=None)
        census = await report.count(db, session)
    return Examination(tuple(report.findings), census)


class Report:
    """The findings so far."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self.findings: list[Finding] = []

    async def check(
        self,
        name: str,
        check: Callable[[], AsyncIterator[Finding]],
        session: Session,
        seconds: float | None = SECONDS_TO_CHECK,
    ) -> bool:
        """Run a check, again after a conflict; returns whether it found neither a problem nor a warning."""
        if not session.alive:
            return False  # an earlier check reported the lost connection
        found = []
        for left in reversed(range(MAX_TRIES)):
            try:
                async with asyncio.timeout(seconds):
                    found = [each async for each in check()]
            except Exception as error:
                if left and is_conflict(error):
                    await pause(MAX_TRIES - left)
                    continue
                found = [self._trouble(name, error)]
            break
        self.findings += found
        return all(each.level in (Level.OK, Level.NOTE) for each in found)

    async def count(self, db: Db, session: Session) -> Census | None:
        """Take the census, in one snapshot; None if that failed, which is added as a finding."""
        if not session.alive:
            return None
        for left in reversed(range(MAX_TRIES)):
            try:
                async with asyncio.timeout(SECONDS_TO_CHECK):
                    await session.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    return await take_census(db)
            except Exception as error:
                if left and is_conflict(error):
                    await session.script("ROLLBACK")
                    await pause(MAX_TRIES - left)
                    continue
                self.findings.append(self._trouble("jobs", error))
                return None
        return None

    def _trouble(self, name: str, error: Exception) -> Finding:
        translated = translate(error, self._shown)
        advice = "if no other finding explains that, look at the server's log"
        return problem(name, f"could not be checked: {translated}", advice)
