"""Examine a database file: run every check, whatever the others found, and take the census of its jobs.

Nothing is created or changed: the file is opened for reading only, and without companion files if nothing has it
open.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec

from windlass.core.moments import SECOND, Micros, show_duration
from windlass.core.stats.meter import METER_RETENTION
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.clock import Clock
from windlass.store.doctor import (
    KEY_PORTION,
    Census,
    Examination,
    Finding,
    Level,
    OrphanedKey,
    Waiting,
    key_findings,
    note,
    ok,
    problem,
    warning,
)
from windlass.store.drive import drive
from windlass.store.rows import info_of
from windlass.store.sql.schedules import all_schedules
from windlass.store.sql.stats import recent
from windlass.store.sqlite.address import Address, connection_class
from windlass.store.sqlite.connection.base import Connection, DriverError, ErrorKind, to_store_error
from windlass.store.sqlite.connection.files import companion
from windlass.store.sqlite.db import Db, SharedDb
from windlass.store.sqlite.doctor import file_checks
from windlass.store.sqlite.liveness.leases import lapsed
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks
from windlass.store.sqlite.liveness.workers import leader, live_workers
from windlass.store.sqlite.migrate import migrations, newer_steps, version_of
from windlass.store.sqlite.verbs.admit import oldest
from windlass.store.sqlite.verbs.park import parked_types

T = TypeVar("T")

SECONDS_TO_CHECK = 5.0
FREE_KEY = "DELETE FROM windlass_idempotency_keys WHERE until IS NULL AND job = '{job}'"
"""The statement with which an operator frees an orphaned key: advice, which is not executed here."""
MAX_FAULTS = 5
UNKNOWN_BOOT = "unknown"
CLOCK_TOLERANCE: Micros = 5 * SECOND
"""How far the boot and wall clocks may differ: they are not read at the same moment, and one of them is slewed."""
MAX_COUNTED = 20_000
"""Jobs counted per queue, per parked type, and of all delayed ones, so that a census of millions is quick."""
MAX_RUNNERS = 1000


def examine(address: Address, clock: Clock, *, deep: bool) -> Examination:
    """The findings about a file, which may not exist or not be a store, and its census if it is one."""
    path, report = address.path, Report(address.path)
    report.check("versions", lambda: file_checks.check_versions(address.driver))
    report.check("durability", lambda: file_checks.check_durability(address))
    if path.parent.is_dir():
        report.check("file system", lambda: file_checks.check_file_system(address))
        report.check("disk", lambda: file_checks.check_free_space(path.parent))
    census = None
    if report.check("file", lambda: file_checks.check_presence(path)):
        report.check("file", lambda: file_checks.check_names(path))
        report.check("rights", lambda: file_checks.check_rights(path))
        if report.check("file", lambda: file_checks.check_header(path, connection_class(address.driver))):
            report.check("log", lambda: file_checks.check_log(path))
            census = _read(address, clock, report, deep=deep)
    return Examination(tuple(report.findings), census)


class Report:
    """The findings so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.findings: list[Finding] = []

    def check(self, name: str, work: Callable[[], Iterable[Finding]]) -> bool:
        """Add the findings of a check; returns whether none of them is a problem."""
        found = self.attempt(name, lambda: list(work()))
        self.findings += found or ()
        return found is not None and all(each.level is not Level.PROBLEM for each in found)

    def attempt(self, name: str, work: Callable[[], T]) -> T | None:
        """The result of the work; None if it failed, which is added as a finding."""
        try:
            return work()
        except DriverError as error:
            failure = str(to_store_error(error, self._path))
        except (ConfigError, StoreUnavailable, OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            failure = str(error)
        advice = "if no other finding explains that, restore a back-up"
        self.findings.append(problem(name, f"could not be checked: {failure}", advice))
        return None


def _read(address: Address, clock: Clock, report: Report, *, deep: bool) -> Census | None:
    """Read the database; if another process began to use it meanwhile, read it again, not as immutable."""
    path = address.path
    before, earlier_findings = _state(path), len(report.findings)
    immutable = not any(companion(path, end).exists() for end in ("-wal", "-journal"))
    census = _inside(address, clock, report, deep=deep, immutable=immutable)
    if immutable and _state(path) != before:
        del report.findings[earlier_findings:]
        census = _inside(address, clock, report, deep=deep, immutable=False)
    return census


def _inside(address: Address, clock: Clock, report: Report, *, deep: bool, immutable: bool) -> Census | None:
    path, library = address.path, connection_class(address.driver)
    connection = report.attempt("contents", lambda: library.read_only(path, immutable=immutable))
    if connection is None:
        return None
    folder = companion(path, "-live")
    db = Db(connection, clock, LivenessLocks(folder))
    try:
        report.check("schema", lambda: check_schema(connection))
        usable = report.findings[-1].level in (Level.OK, Level.NOTE)
        report.check("integrity", lambda: check_integrity(connection, deep=deep))
        if not usable:
            return None
        report.check("machine", lambda: check_machines(db))
        report.check("leftovers", lambda: check_leftovers(db, folder))
        if deep:
            report.check("idempotency keys", lambda: check_idempotency_keys(db))
        # One snapshot for all statements of the census; closing the connection ends it.
        report.attempt("jobs", lambda: connection.run("BEGIN"))
        return report.attempt("jobs", lambda: take_census(db))
    finally:
        connection.close()


def _state(path: Path) -> tuple[int, int, bool]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, companion(path, "-wal").exists()


def take_census(db: Db) -> Census:
    """Take the census in the caller's snapshot."""
    counts = [*_pending(db), _delayed(db), *_parked(db)]
    late = {lease[0] for lease in db.rows("leases") if lapsed(db, lease)}
    late |= {row[0] for row in db.rows("runners_without_lease", {"limit": MAX_RUNNERS})}
    return Census(
        now=db.now,
        newest=db.rows("newest_timestamp")[0][0],
        workers=tuple(live_workers(db)),
        waiting=tuple(chain.from_iterable(counts)),
        counted_all=all(sum(each.jobs for each in count) < MAX_COUNTED for count in counts),
        paused=tuple(row[0] for row in db.rows("paused_queues", {"now": db.now})),
        dead=db.rows("count_dead")[0][0],
        late_runners=len(late),
        late_jobs=sum(len(db.rows("held", {"runner": runner})) for runner in late),
        coordinator=leader(db),
        schedules=tuple(drive(all_schedules(SharedDb(db)))),
        oldest=oldest(db),
        recent=drive(recent(SharedDb(db), METER_RETENTION)),
    )


def _pending(db: Db) -> Iterator[list[Waiting]]:
    """The pending jobs, one list per queue."""
    queue = ""
    while rows := db.rows("next_queue", {"after": queue}):
        queue = rows[0][0]
        found = db.rows("count_pending", {"queue": queue, "limit": MAX_COUNTED})
        yield [Waiting(queue=queue, type=type_, jobs=jobs, due=True) for type_, jobs in found]


def _delayed(db: Db) -> list[Waiting]:
    """Delayed jobs and retries, by queue, type, and whether they are due."""
    found = db.rows("count_delayed", {"now": db.now, "limit": MAX_COUNTED})
    return [Waiting(queue=queue, type=type_, jobs=jobs, due=bool(due)) for queue, type_, due, jobs in found]


def _parked(db: Db) -> Iterator[list[Waiting]]:
    """The parked jobs, one list per type."""
    for type_ in parked_types(db):
        found = db.rows("count_parked", {"type": type_, "limit": MAX_COUNTED})
        yield [Waiting(queue=queue, type=type_, jobs=jobs, due=False, parked=True) for queue, jobs in found]


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Whether this version of Windlass works with the tables."""
    found, steps = version_of(connection), migrations()
    newest, newer = steps[-1], newer_steps(connection)
    if breaking := [name for name, breaks in newer if breaks]:
        yield problem(
            "schema",
            f"the database has step {breaking[0]}, which this version of Windlass cannot work with",
            "upgrade Windlass: pip install --upgrade windlass",
        )
    elif newer:
        names = ", ".join(name for name, _ in newer)
        yield note("schema", f"the schema is newer than this Windlass ({names}), and works with it")
    elif found == newest.number:
        yield ok("schema", f"up to date ({newest.name})")
    else:
        missing = ", ".join(step.name for step in steps if step.number > found)
        state = f"is at {found} of {newest.number}" if found else "does not exist yet"
        yield warning(
            "schema", f"the schema {state}; missing: {missing}", "windlass migrate (the first use does it too)"
        )


def check_integrity(connection: Connection, *, deep: bool) -> Iterator[Finding]:
    """SQLite's quick check, for a few seconds; if deep, its full check with every index entry, to its end."""
    statement = "integrity_check" if deep else "quick_check"
    begun = time.monotonic()
    seconds = None if deep else SECONDS_TO_CHECK
    try:
        faults = connection.with_time_limit(seconds, lambda: connection.rows(f"PRAGMA {statement}({MAX_FAULTS})"))
    except DriverError as error:
        if error.kind is not ErrorKind.INTERRUPTED:
            raise
        says = f"{SECONDS_TO_CHECK:g} s of {statement} found no fault; the rest of the file was not checked"
        yield note("integrity", says, "windlass doctor --deep checks all of it")
        return
    if faults == [("ok",)]:
        took = show_duration(round((time.monotonic() - begun) * SECOND))
        yield ok("integrity", f"{statement} found no fault ({took})")
        return
    for (fault,) in faults:
        yield problem("integrity", f"the database is damaged: {fault}", "stop all workers and restore a back-up")


def check_machines(db: Db) -> Iterator[Finding]:
    """Whether all workers run on this machine: leases and liveness locks work on one machine only."""
    if db.clock.boot == UNKNOWN_BOOT:
        yield warning(
            "machine",
            "this system has no boot id: a lease from before a restart looks like a new one",
            "after a restart of the machine, expect a rescue of its jobs only when their leases end",
        )
    started = db.now - db.clock.since_boot() + CLOCK_TOLERANCE
    found = db.rows("workers_of_other_boots", {"boot": db.clock.boot, "started": started})
    # A held lock proves that its worker runs on this kernel, in a container with a boot id of its own.
    others = [(info, beat_at) for worker, info, beat_at in found if not db.liveness_locks.alive(worker)]
    for info, beat_at in others:
        yield problem(
            "machine",
            f"a worker on {info_of(info).host} used this file {_ago(db.now - beat_at)} from another machine, or from "
            "a container with a boot id of its own in which it was killed",
            "an SQLite file serves one machine: run all workers there, or use PostgreSQL; the next coordinator "
            "removes the entry of a killed worker",
        )
    if not others and db.clock.boot != UNKNOWN_BOOT:
        yield ok("machine", "all workers are on this machine")


def _ago(passed: Micros) -> str:
    return f"{show_duration(passed)} ago" if passed >= 0 else f"in {show_duration(-passed)} by its clock"


def check_leftovers(db: Db, folder: Path) -> Iterator[Finding]:
    """Files of liveness locks that dead processes left behind."""
    if not folder.is_dir():
        return
    known = {row[0] for row in db.rows("leases")} | {row[0] for row in db.rows("workers")}
    leftovers = [
        each.name for each in folder.iterdir() if each.name not in known and not db.liveness_locks.alive(each.name)
    ]
    if leftovers:
        says = f"{len(leftovers)} files in {folder} belong to dead processes; they do no harm"
        yield note("leftovers", says, "they may be deleted while no worker runs")


def check_idempotency_keys(db: Db) -> list[Finding]:
    """Look for keys that nothing will free, batch by batch."""
    checked, orphaned, queue, hash_ = 0, list[OrphanedKey](), "", ""
    while rows := db.rows("scan_idempotency_keys", {"queue": queue, "hash": hash_, "limit": KEY_PORTION}):
        checked += len(rows)
        orphaned += [OrphanedKey(*row[:3]) for row in rows if row[3]]
        queue, hash_ = rows[-1][:2]
    return key_findings(checked, orphaned, lambda key: FREE_KEY.format(job=key.job))
