"""The bare PostgreSQL loop: asyncpg on uvloop, live and history tables, batches of 200.

Tables, statements and steps are those of the shared raw benchmark (`pg_designs.py`, `LiveHist`: claim on one
connection, completion of the previous batch on another, COPY in). Change them there first, or not at all.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import asyncpg
import uvloop
from uuid_utils import uuid7

COLUMNS = """
 id uuid NOT NULL, queue text NOT NULL, kind text NOT NULL, payload jsonb NOT NULL, idem text,
 status text NOT NULL DEFAULT 'pending', priority smallint NOT NULL DEFAULT 0, attempt smallint NOT NULL DEFAULT 0,
 max_attempts smallint NOT NULL DEFAULT 3, run_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz,
 finished_at timestamptz, worker text, result jsonb, last_error text, created_at timestamptz NOT NULL DEFAULT now()
"""
DDL = f"""
CREATE TABLE l_jobs({COLUMNS}, PRIMARY KEY(id)) WITH (fillfactor=80);
CREATE INDEX ON l_jobs(queue, priority DESC, run_at, id) WHERE status='pending';
CREATE INDEX ON l_jobs(worker) WHERE status='running';
CREATE UNIQUE INDEX ON l_jobs(queue, idem) WHERE idem IS NOT NULL AND status IN ('pending','running');
CREATE TABLE h_jobs({COLUMNS}, PRIMARY KEY(id, finished_at)) PARTITION BY RANGE (finished_at);
CREATE TABLE h_jobs_1 PARTITION OF h_jobs FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
"""
CLAIM = """
UPDATE l_jobs j SET status='running', worker=$1, started_at=now(), attempt=attempt+1
FROM (SELECT id FROM l_jobs WHERE queue=$2 AND status='pending' AND run_at<=now()
      ORDER BY priority DESC, run_at, id LIMIT $3 FOR UPDATE SKIP LOCKED) c
WHERE j.id=c.id RETURNING j.id, j.kind, j.payload, j.attempt"""
COMPLETE = """WITH d AS (SELECT * FROM unnest($1::uuid[], $2::smallint[]) u(id,attempt)),
 gone AS (DELETE FROM l_jobs j USING d WHERE j.id=d.id AND j.attempt=d.attempt AND j.status='running' RETURNING j.*)
 INSERT INTO h_jobs SELECT id,queue,kind,payload,idem,'completed',priority,attempt,max_attempts,run_at,started_at,
 now(),worker,NULL,last_error,created_at FROM gone"""
BULK = """INSERT INTO l_jobs(id, queue, kind, payload)
SELECT i, 'q', 'k', p::jsonb FROM unnest($1::uuid[], $2::text[]) u(i, p)"""
ONE = """WITH made AS (INSERT INTO l_jobs(id, queue, kind, payload) VALUES($1, 'q', 'k', $2) RETURNING id)
SELECT pg_notify('bare', '') FROM made"""
PAYLOAD = json.dumps({"n": 1, "s": "x" * 64})
BATCH = 200
CHUNK = 1000

T = TypeVar("T")
Row = tuple[uuid.UUID, str]


def on_uvloop(work: Coroutine[Any, Any, T]) -> T:
    """Run it on uvloop, like a worker."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def make(jobs: int) -> list[Row]:
    """Make ids and payloads."""
    return [(uuid.UUID(bytes=uuid7().bytes), PAYLOAD) for _ in range(jobs)]


async def prepare(dsn: str, jobs: int = 0) -> None:
    """Create the tables and copy that many jobs into them."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(DDL)
    if jobs:
        records = [(key, "q", "k", payload) for key, payload in make(jobs)]
        await connection.copy_records_to_table("l_jobs", records=records, columns=["id", "queue", "kind", "payload"])
    await connection.close()


class Loop:
    """One bare worker: claims on one connection, completes the previous batch on another."""

    def __init__(self, name: str, claims: Any, settles: Any) -> None:
        self._name = name
        self._claims = claims
        self._settles = settles

    @classmethod
    async def connect(cls, name: str, dsn: str) -> "Loop":
        """Both connections."""
        return cls(name, await asyncpg.connect(dsn), await asyncpg.connect(dsn))

    async def close(self) -> None:
        """Close both connections."""
        await self._claims.close()
        await self._settles.close()

    async def claim(self) -> Sequence[Any]:
        """The next batch."""
        rows: Sequence[Any] = await self._claims.fetch(CLAIM, self._name, "q", BATCH)
        return rows

    async def complete(self, rows: Sequence[Any]) -> None:
        """Move a batch to history."""
        await self._settles.execute(COMPLETE, [row["id"] for row in rows], [row["attempt"] for row in rows])

    async def drain(self) -> int:
        """Drain until nothing is left; returns the number of jobs."""
        done, settling = 0, None
        while True:
            rows = await self.claim()
            if settling is not None:
                await settling
            if not rows:
                return done
            settling = asyncio.ensure_future(self.complete(rows))
            done += len(rows)


async def insert_in_bulk(dsn: str, jobs: int) -> tuple[float, float]:
    """INSERT … unnest, 1,000 rows per commit: seconds with and without the creation of the rows."""
    connection = await asyncpg.connect(dsn)
    insert = await connection.prepare(BULK)
    began = time.perf_counter()
    rows = make(jobs)
    made = time.perf_counter()
    for start in range(0, jobs, CHUNK):
        keys, payloads = zip(*rows[start : start + CHUNK], strict=True)
        await insert.fetch(keys, payloads)
    ended = time.perf_counter()
    await connection.close()
    return ended - began, ended - made


async def insert_one_by_one(dsn: str, jobs: int) -> float:
    """A prepared INSERT with NOTIFY and its flushed commit for every job: seconds."""
    connection = await asyncpg.connect(dsn)
    insert, rows = await connection.prepare(ONE), make(jobs)
    began = time.perf_counter()
    for row in rows:
        await insert.fetch(*row)
    taken = time.perf_counter() - began
    await connection.close()
    return taken
