"""The targets and the peers of each store; the only module that names peers."""

import msgspec

from bench.peer_entry import PeerEntry, PeerRun
from bench.report.figures import Target


def at_most(bound: float) -> Target:
    """A target where less is better."""
    return Target(bound, at_least=False)


class Targets(msgspec.Struct, frozen=True, kw_only=True):
    """Targets that depend on the store; None: measured, without a target."""

    bare: str
    bare_inserts: str
    """The bare loop and the bare driver's enqueues, in words."""
    bare_wake: str = ""
    """The bare wake-up in words, where there is one."""
    stored: str = "Every figure ends with the job flushed to disk."
    drain: Target
    """One runner, of the bare loop."""
    two_runners: Target | None
    """Of bare loops together; of one runner where only one can write."""
    threads: Target | None
    """Plain functions, of async ones."""
    no_history: Target | None
    """Without history, of the same drain with it."""
    bulk: Target
    together: Target | None
    alone: Target | None
    """Enqueue: in bulk, by many coroutines, one by one; of the bare driver."""
    median: Target
    """From enqueue to start: of the bare wake-up where there is one, else in milliseconds."""
    worst: Target
    """p99, of our own median."""
    snapshots: bool = True
    """Whether the store has snapshots that a connection can hold."""
    held: Target | None
    """The drain under a held snapshot, of that without; also its last jobs, of its first ones."""
    trickle: Target | None
    """p99 of a trickle under a held snapshot, of that without."""
    history: Target | None
    """The drain with much history, of that with none."""
    waiting: Target | None
    """Claim and settle while many wait, of that while few do."""
    steady: Target = at_most(1.5)
    """A claim while many wait, or many have ended, of that while few do."""
    kept: str = "on disk"
    """Whether jobs are in memory or on disk."""
    space: Target | None = None
    """Bytes for each waiting job."""
    longest: Target | None = None
    """Milliseconds of the longest call, by the server's log."""


SQLITE = Targets(
    bare="The bare loop is the driver alone: batches of 100, completion of one batch and claim of the next in one "
    "flushed transaction, rows moved to history.",
    bare_inserts="The bare driver inserts by `executemany`, 1,000 rows to a transaction; one commit per job: "
    "`BEGIN IMMEDIATE`, `INSERT`, `COMMIT` on one connection.",
    drain=Target(0.40),
    two_runners=Target(1.0),
    threads=Target(0.60),
    no_history=None,
    bulk=Target(0.50),
    together=Target(5.0),
    alone=Target(0.80),
    median=at_most(5.0),
    worst=at_most(4.0),
    held=None,
    trickle=None,
    history=Target(0.90),
    waiting=None,
)
_DBOS = PeerEntry(
    name="DBOS",
    package="dbos",
    script="dbos_peer.py",
    group=PeerRun(500, note="a workflow on the same queue that takes the results"),
    note="DBOS: its defaults; it polls every second.",
)
SQLITE_PEERS = (
    PeerEntry(
        name="Huey",
        package="huey",
        script="huey_peer.py",
        loads=True,
        keeps=False,
        drain=PeerRun(5_000, Target(7.0)),
        single=PeerRun(2_000, Target(1.0)),
        note="Huey: its consumer's defaults (one thread), without its log line per task; it keeps no history, and "
        "a job that a dying worker has taken is lost. It polls every 0.1 s and, after a longer idle time, less often "
        "(up to 10 s).",
    ),
    _DBOS,
)

POSTGRES = Targets(
    bare="The bare loop is the driver alone: asyncpg on uvloop, batches of 200, claims on one connection and "
    "completion of the batch before on another, every commit flushed, rows moved to history.",
    bare_inserts="The bare driver inserts by `INSERT … SELECT FROM unnest`, 1,000 rows to a commit, into the live "
    "table of the bare loop with its indexes; one commit per job: a prepared `INSERT` with `NOTIFY` on one "
    "connection.",
    bare_wake="The bare wake-up is the driver alone: one process inserts a row and notifies in one flushed "
    "statement, another that listens claims it; from just before the statement to the claim's answer.",
    drain=Target(0.55),
    two_runners=Target(0.65),
    threads=None,
    no_history=Target(1.0),
    bulk=Target(0.60),
    together=None,
    alone=Target(0.80),
    median=at_most(1.3),
    worst=at_most(3.0),
    held=Target(0.90),
    trickle=at_most(2.0),
    history=Target(0.90),
    waiting=Target(0.80),
)
POSTGRES_PEERS = (
    PeerEntry(
        name="pgqueuer",
        package="pgqueuer",
        script="pgqueuer_peer.py",
        loads=True,
        drain=PeerRun(100_000, Target(2.5)),
        threads=PeerRun(60_000, Target(2.0)),
        bulk=PeerRun(100_000, Target(1.5)),
        single=PeerRun(2_000, Target(1.2)),
        note="pgqueuer: asyncpg, uvloop, batches of 1,000; plain functions by `asyncio.to_thread`. A finished job is "
        "deleted and leaves lines in its log.",
    ),
    PeerEntry(
        name="oban",
        package="oban",
        script="oban_peer.py",
        drain=PeerRun(30_000, Target(7.0)),
        bulk=PeerRun(20_000),
        single=PeerRun(2_000),
        note="oban: a limit of 200, uvloop, on the newest installed Python (it needs 3.12). Its table is not "
        "analysed after filling, which would make it slower.",
    ),
    PeerEntry(
        name="procrastinate",
        package="procrastinate",
        script="procrastinate_peer.py",
        drain=PeerRun(3_000, Target(60.0)),
        threads=PeerRun(3_000),
        bulk=PeerRun(20_000),
        single=PeerRun(2_000),
        note="procrastinate: a concurrency of 20, psycopg's pool.",
    ),
    PeerEntry(
        name="graphile-worker",
        package="graphile",
        script="graphile_peer.cjs",
        loads=True,
        node=True,
        drain=PeerRun(200_000, Target(1.2)),
        bulk=PeerRun(100_000),
        single=PeerRun(2_000),
        note="graphile-worker: Node; localQueue 2,000, 24 jobs at once, completions in batches without delay. It "
        "keeps no history.",
    ),
    _DBOS,
)

REDIS = Targets(
    bare="The bare loop is the driver alone: redis-py with hiredis, one connection, three scripts over a sorted set "
    "of ids and a hash for each job, batches of 100, completion after claim, no history.",
    bare_inserts="The bare driver inserts by such a script, 1,000 jobs to a call; one commit per job: one to a call.",
    bare_wake="The bare wake-up is the driver alone: one process inserts a job and pushes an item in one call, "
    "another waits for the item by BLPOP and claims; from just before the call to the claim's answer.",
    stored="Every figure ends with the server's answer; it flushes its log once a second, also for peers.",
    drain=Target(0.45),
    two_runners=Target(1.0),
    threads=None,
    no_history=None,
    bulk=Target(0.50),
    together=None,
    alone=None,
    median=at_most(1.5),
    worst=at_most(3.0),
    snapshots=False,
    held=None,
    trickle=None,
    history=Target(0.90),
    waiting=None,
    steady=at_most(1.3),
    kept="in memory",
    space=at_most(600.0),
    longest=at_most(10.0),
)
_AHEAD = Target(6.0)
"""Of every peer in Python."""
REDIS_PEERS = (
    PeerEntry(
        name="Dramatiq",
        package="dramatiq",
        script="dramatiq_peer.py",
        drain=PeerRun(30_000, _AHEAD),
        single=PeerRun(2_000),
        note="Dramatiq: its Redis broker, one process with 8 threads. It keeps no history.",
    ),
    PeerEntry(
        name="taskiq",
        package="taskiq",
        script="taskiq_peer.py",
        drain=PeerRun(20_000, _AHEAD),
        single=PeerRun(2_000),
        note="taskiq: its list broker without results, uvloop, 100 at once. It keeps no history, and a job that "
        "a dying worker has popped is lost.",
    ),
    PeerEntry(
        name="Huey",
        package="huey",
        script="huey_peer.py",
        loads=True,
        keeps=False,
        drain=PeerRun(20_000, _AHEAD),
        single=PeerRun(2_000, Target(0.9)),
        note="Huey: RedisHuey, its consumer's defaults (one thread, blocking pop), without its log line per task. It "
        "keeps no history, and a job that a dying worker has popped is lost.",
    ),
    PeerEntry(
        name="SAQ",
        package="saq",
        script="saq_peer.py",
        drain=PeerRun(10_000, _AHEAD),
        single=PeerRun(2_000),
        note="SAQ: uvloop, a concurrency of 30; finished jobs are kept for ten minutes.",
    ),
    PeerEntry(
        name="arq",
        package="arq",
        script="arq_peer.py",
        drain=PeerRun(5_000, _AHEAD),
        single=PeerRun(2_000),
        note="arq: uvloop, 100 at once, no results; it polls every 0.5 s.",
    ),
    PeerEntry(
        name="streaQ",
        package="streaq",
        script="streaq_peer.py",
        server=7,
        drain=PeerRun(10_000, _AHEAD),
        bulk=PeerRun(10_000),
        single=PeerRun(2_000),
        note="streaQ: a concurrency of 64, its defaults otherwise; results are kept for five minutes.",
    ),
    PeerEntry(
        name="Celery",
        package="celery",
        script="celery_peer.py",
        drain=PeerRun(5_000, _AHEAD),
        group=PeerRun(2_000, _AHEAD, "a chord"),
        single=PeerRun(1_000),
        note="Celery: a pool of 8 threads, acknowledged late, no results. It keeps no history.",
    ),
    PeerEntry(
        name="RQ",
        package="rq",
        script="rq_peer.py",
        drain=PeerRun(2_000, _AHEAD),
        group=PeerRun(1_000, note="a job that depends on all others; each member costs more the more there are"),
        bulk=PeerRun(10_000),
        single=PeerRun(2_000),
        note="RQ: SimpleWorker, its fastest, which does not fork for each job; results are kept for 500 s.",
    ),
    PeerEntry(
        name="bullmq",
        package="bullmq",
        script="bullmq_peer.cjs",
        loads=True,
        node=True,
        drain=PeerRun(50_000, Target(1.3)),
        group=PeerRun(20_000, note="a flow with one parent"),
        bulk=PeerRun(50_000),
        single=PeerRun(2_000, Target(1.3)),
        note="BullMQ: Node, a concurrency of 100; finished jobs are kept.",
    ),
)
