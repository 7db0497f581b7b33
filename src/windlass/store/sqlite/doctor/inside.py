"""Checks inside the database: schema, integrity, workers of other machines, leftovers."""

import time
from collections.abc import Iterator
from pathlib import Path

from windlass.core.moments import SECOND, Micros, show_duration
from windlass.store.doctor import Finding, note, ok, problem, warning
from windlass.store.orphaned_keys import PORTION, OrphanedKey, conclude
from windlass.store.rows import info_of
from windlass.store.sqlite.connection.base import Connection, DriverError, ErrorKind
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.migrate import migrations, newer_steps, version_of

SECONDS_TO_CHECK = 5.0
FREE_KEY = "DELETE FROM windlass_idempotency_keys WHERE until IS NULL AND job = '{job}'"
"""What an operator may do about an orphaned key."""
MAX_FAULTS = 5
UNKNOWN_BOOT = "unknown"
CLOCK_TOLERANCE: Micros = 5 * SECOND
"""The boot and wall clocks are not read at the same moment, and one of them is slewed."""


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Whether this version works with the tables."""
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
        state = f"is at {found} of {newest.number}" if found else "is not there yet"
        yield warning(
            "schema", f"the schema {state}; missing: {missing}", "windlass migrate (the first use does it too)"
        )


def check_soundness(connection: Connection, *, deep: bool) -> Iterator[Finding]:
    """SQLite's own check for some seconds; the deep one to its end, with every index entry."""
    statement = "integrity_check" if deep else "quick_check"
    begun = time.monotonic()
    seconds = None if deep else SECONDS_TO_CHECK
    try:
        faults = connection.with_time_limit(seconds, lambda: connection.rows(f"PRAGMA {statement}({MAX_FAULTS})"))
    except DriverError as error:
        if error.kind is not ErrorKind.INTERRUPTED:
            raise
        says = f"{SECONDS_TO_CHECK:g} s of {statement} found no fault, and there is more of the file than that"
        yield note("integrity", says, "windlass doctor --deep checks all of it")
        return
    if faults == [("ok",)]:
        took = show_duration(round((time.monotonic() - begun) * SECOND))
        yield ok("integrity", f"{statement} found no fault ({took})")
        return
    for (fault,) in faults:
        yield problem("integrity", f"the database is damaged: {fault}", "stop all workers and restore a back-up")


def check_machines(db: Db) -> Iterator[Finding]:
    """Leases and liveness locks work on one machine only."""
    if db.clock.boot == UNKNOWN_BOOT:
        yield warning(
            "machine",
            "this system does not tell which boot it is: leases from before a restart look like new ones",
            "after a crash of the machine, wait for one lease before jobs are rescued",
        )
    started = db.now - db.clock.since_boot() + CLOCK_TOLERANCE
    found = db.rows("workers_of_other_boots", {"boot": db.clock.boot, "started": started})
    # A held lock proves the same kernel: that worker is in a container with a boot id of its own.
    others = [(info, beat_at) for worker, info, beat_at in found if not db.liveness_locks.alive(worker)]
    for info, beat_at in others:
        yield problem(
            "machine",
            f"a worker on {info_of(info).host} used this file {_ago(db.now - beat_at)} from another machine, or from "
            "a container with a boot id of its own in which it was killed",
            "an SQLite file serves one machine: move the workers together, or use PostgreSQL; the entry of a killed "
            "worker goes with the next one that coordinates",
        )
    if not others and db.clock.boot != UNKNOWN_BOOT:
        yield ok("machine", "all workers are on this machine")


def _ago(passed: Micros) -> str:
    return f"{show_duration(passed)} ago" if passed >= 0 else f"in {show_duration(-passed)} by its clock"


def check_leftovers(db: Db, folder: Path) -> Iterator[Finding]:
    """Liveness locks of dead processes; harmless."""
    if not folder.is_dir():
        return
    known = {row[0] for row in db.rows("leases")} | {row[0] for row in db.rows("workers")}
    left = [
        each.name for each in folder.iterdir() if each.name not in known and not db.liveness_locks.alive(each.name)
    ]
    if left:
        says = f"{len(left)} files in {folder} are of processes that died; they do no harm"
        yield note("leftovers", says, "they may be deleted while no worker runs")


def check_idempotency_keys(db: Db) -> list[Finding]:
    """Keys that nothing will ever free, read in batches."""
    seen, left, queue, hash_ = 0, list[OrphanedKey](), "", ""
    while rows := db.rows("scan_idempotency_keys", {"queue": queue, "hash": hash_, "limit": PORTION}):
        seen += len(rows)
        left += [OrphanedKey(*row[:3]) for row in rows if row[3]]
        queue, hash_ = rows[-1][:2]
    return conclude(seen, left, lambda key: FREE_KEY.format(job=key.job))
