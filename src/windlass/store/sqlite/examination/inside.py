"""Inside the database: its schema, its soundness, and who else believes to be using it."""

import time
from collections.abc import Iterator
from pathlib import Path

from windlass.core.moments import SECOND, Micros, show_duration
from windlass.store.examination import Finding, note, ok, problem, warning
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.migrate import migrations, version_of
from windlass.store.sqlite.trouble import DriverError, Trouble
from windlass.store.workers import info_of

SECONDS_TO_CHECK = 5.0
MOST_FAULTS = 5
UNKNOWN_BOOT = "unknown"
REBOOT: Micros = 5 * SECOND
"""The two clocks are not read at the same moment, and one of them is slewed."""


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Whether this Windlass and the tables fit together."""
    found, steps = version_of(connection), migrations()
    newest = steps[-1]
    if found == newest.number:
        yield ok("schema", f"up to date ({newest.name})")
    elif found > newest.number:
        yield problem(
            "schema",
            f"the database has schema {found}, this Windlass knows up to {newest.number}",
            "upgrade Windlass: pip install --upgrade windlass",
        )
    else:
        missing = ", ".join(step.name for step in steps if step.number > found)
        state = f"is at {found} of {newest.number}" if found else "is not there yet"
        yield warning(
            "schema", f"the schema {state}; missing: {missing}", "windlass migrate (the first use does it too)"
        )


def check_soundness(connection: Connection, *, deep: bool) -> Iterator[Finding]:
    """SQLite's own check, for so long; the deep one to its end, with every index entry compared."""
    statement = "integrity_check" if deep else "quick_check"
    begun = time.monotonic()
    seconds = None if deep else SECONDS_TO_CHECK
    try:
        faults = connection.within(seconds, lambda: connection.rows(f"PRAGMA {statement}({MOST_FAULTS})"))
    except DriverError as error:
        if error.trouble is not Trouble.INTERRUPTED:
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
    """Leases and proofs of life are true on one machine only."""
    if db.clock.boot == UNKNOWN_BOOT:
        yield warning(
            "machine",
            "this system does not tell which boot it is: leases from before a restart look like new ones",
            "after a crash of the machine, wait for one lease before jobs are rescued",
        )
    started = db.now - db.clock.since_boot() + REBOOT
    others = db.rows("strangers_alive", {"boot": db.clock.boot, "started": started})
    for _, info, beat_at in others:
        yield problem(
            "machine",
            f"a worker on {info_of(info).host} used this file {_ago(db.now - beat_at)} from another machine",
            "an SQLite file serves one machine: move the workers together, or use PostgreSQL",
        )
    if not others and db.clock.boot != UNKNOWN_BOOT:
        yield ok("machine", "all workers are on this machine")


def _ago(passed: Micros) -> str:
    return f"{show_duration(passed)} ago" if passed >= 0 else f"in {show_duration(-passed)} by its clock"


def check_leftovers(db: Db, folder: Path) -> Iterator[Finding]:
    """Proofs of life of the dead that nobody has cleared away; harmless."""
    if not folder.is_dir():
        return
    known = {row[0] for row in db.rows("leases")} | {row[0] for row in db.rows("workers")}
    left = [each.name for each in folder.iterdir() if each.name not in known and not db.vouchers.alive(each.name)]
    if left:
        says = f"{len(left)} files in {folder} are of processes that died; they do no harm"
        yield note("leftovers", says, "they may be deleted while no worker runs")
