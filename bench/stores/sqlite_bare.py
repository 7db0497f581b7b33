"""The bare SQLite loop: apsw, write-ahead log, `synchronous=FULL`, one connection.

Table, statements and steps are those of the shared raw benchmark (`sqlite_designs.py`: apsw, FULL, batches of 100,
settle and claim in one transaction, rows moved to history). Change them there first, or not at all.
"""

import json
import time
from pathlib import Path
from typing import Any

import apsw
from uuid_utils import uuid7

from bench.stores.base import BareDrain

DDL = """
CREATE TABLE job(id BLOB PRIMARY KEY, queue TEXT NOT NULL, type TEXT NOT NULL, payload TEXT NOT NULL, idem TEXT,
 state TEXT NOT NULL DEFAULT 'pending', priority INT NOT NULL DEFAULT 0, attempt INT NOT NULL DEFAULT 0,
 max_attempts INT NOT NULL DEFAULT 3, run_at REAL NOT NULL, started_at REAL, finished_at REAL, worker TEXT,
 result TEXT, error TEXT, created_at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX job_ready ON job(queue, priority DESC, run_at, id) WHERE state='pending';
CREATE INDEX job_worker ON job(worker) WHERE state='running';
CREATE UNIQUE INDEX job_idem ON job(queue, idem) WHERE idem IS NOT NULL;
CREATE TABLE history(id BLOB PRIMARY KEY, queue TEXT, type TEXT, payload TEXT, state TEXT, attempt INT, run_at REAL,
 started_at REAL, finished_at REAL, worker TEXT, result TEXT, error TEXT, created_at REAL) WITHOUT ROWID;
"""
INSERT = "INSERT INTO job(id,queue,type,payload,run_at,created_at) VALUES(?,?,?,?,?,?)"
CLAIM = """UPDATE job SET state='running', worker=?1, started_at=?2, attempt=attempt+1 WHERE id IN (
 SELECT id FROM job WHERE queue=?3 AND state='pending' AND run_at<=?2 ORDER BY priority DESC, run_at, id LIMIT ?4)
 RETURNING id,type,payload,attempt"""
FINISH = """INSERT INTO history
 SELECT id,queue,type,payload,'completed',attempt,run_at,started_at,?1,worker,NULL,error,created_at
 FROM job WHERE id=?2 AND attempt=?3 AND state='running'"""
DROP = "DELETE FROM job WHERE id=?1 AND attempt=?2 AND state='running'"
PAYLOAD = {"n": 1, "s": "x" * 64}
BATCH = 100
CHUNK = 1000


class Bare:
    """One connection to an empty file with the bare table."""

    def __init__(self, path: Path) -> None:
        self._apsw = apsw.Connection(str(path), statementcachesize=100)
        self._rows("PRAGMA journal_mode=wal")
        self._rows("PRAGMA synchronous=FULL")
        self._apsw.set_busy_timeout(5000)
        self._rows(DDL)

    def close(self) -> None:
        """Close the file."""
        self._apsw.close()

    def insert(self, jobs: int) -> tuple[float, float]:
        """In bulk, 1,000 per transaction: seconds with and without the creation of the rows."""
        began = time.perf_counter()
        rows = self._make(jobs)
        made = time.perf_counter()
        for start in range(0, jobs, CHUNK):
            self._rows("BEGIN IMMEDIATE")
            self._apsw.executemany(INSERT, rows[start : start + CHUNK])
            self._rows("COMMIT")
        ended = time.perf_counter()
        return ended - began, ended - made

    def insert_one_by_one(self, jobs: int) -> float:
        """A commit, flushed to disk, for every job: seconds."""
        rows = self._make(jobs)
        began = time.perf_counter()
        for row in rows:
            self._rows("BEGIN IMMEDIATE")
            self._rows(INSERT, row)
            self._rows("COMMIT")
        return time.perf_counter() - began

    def drain(self) -> BareDrain:
        """Complete the last batch and claim the next in one transaction, until nothing is left."""
        began, cpu = time.perf_counter(), time.process_time()
        done, batch = 0, list[Any]()
        while True:
            self._rows("BEGIN IMMEDIATE")
            if batch:
                self._finish(batch)
                done += len(batch)
            batch = self._rows(CLAIM, ("w", time.time(), "q", BATCH))
            self._rows("COMMIT")
            if not batch:
                break
            for job in batch:
                json.loads(job[2])
        return BareDrain(done / (time.perf_counter() - began), (time.process_time() - cpu) / done)

    def _finish(self, batch: list[Any]) -> None:
        now = time.time()
        self._apsw.executemany(FINISH, [(now, job[0], job[3]) for job in batch])
        self._apsw.executemany(DROP, [(job[0], job[3]) for job in batch])

    def _make(self, jobs: int) -> list[tuple[Any, ...]]:
        payload, now = json.dumps(PAYLOAD), time.time()
        return [(uuid7().bytes, "q", "k", payload, now, now) for _ in range(jobs)]

    def _rows(self, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return list(self._apsw.execute(text, values))
