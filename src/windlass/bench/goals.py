"""What each kind of store is to reach, and who stands beside it: the only place with targets and peers by name."""

import msgspec

from windlass.bench.figures import Target


def at_most(bound: float) -> Target:
    """A target where less is better."""
    return Target(bound, at_least=False)


class Goals(msgspec.Struct, frozen=True, kw_only=True):
    """Targets that depend on the store; None: measured, without a target."""

    bare: str
    bare_inserts: str
    """What the bare loop and the bare driver's hand-ins do, in words."""
    drain: Target
    """One runner, of the bare loop."""
    two_runners: Target
    """Of what bare loops reach together; of one runner where that says nothing, since only one can write."""
    threads: Target | None
    """Plain functions, of async ones."""
    unkept: Target | None
    """Without history, of the same drain with it."""
    bulk: Target
    together: Target | None
    alone: Target
    """Enqueue: in bulk, by many coroutines, one by one; of the bare driver."""
    median: Target
    """From hand-in to start: of the bare wake-up where there is one, else in milliseconds."""
    worst: Target
    """p99: of our own median where there is a bare wake-up, else in milliseconds."""
    held: Target | None
    """The drain under a held snapshot, of that without; also its last jobs, of its first ones."""
    trickle: Target | None
    """p99 of a trickle under a held snapshot, of that without."""
    history: Target | None
    """The drain with much history, of that with none."""
    waiting: Target | None
    """Claim and settle while many wait, of that while few do."""


class Share(msgspec.Struct, frozen=True):
    """A peer's part in one measurement: jobs for 5 to 15 seconds of a drain, and what we are to reach of it."""

    jobs: int
    target: Target | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A peer: its package, which names its environment as well, its script, and what it is measured in."""

    name: str
    package: str
    script: str
    node: bool = False
    drain: Share | None = None
    threads: Share | None = None
    bulk: Share | None = None
    single: Share | None = None
    note: str = ""


SQLITE = Goals(
    bare="The bare loop is the driver alone: batches of 100, completion of one batch and claim of the next in one "
    "flushed transaction, rows moved to history.",
    bare_inserts="The bare driver inserts by `executemany`, 1,000 rows to a transaction; one commit per job: "
    "`BEGIN IMMEDIATE`, `INSERT`, `COMMIT` on one connection.",
    drain=Target(0.40),
    two_runners=Target(1.0),
    threads=Target(0.60),
    unkept=None,
    bulk=Target(0.50),
    together=Target(8.0),
    alone=Target(0.80),
    median=at_most(5.0),
    worst=at_most(20.0),
    held=None,
    trickle=None,
    history=None,
    waiting=None,
)
BESIDE_SQLITE = (
    Entry(
        name="Huey",
        package="huey",
        script="huey_peer.py",
        drain=Share(5_000, Target(7.0)),
        single=Share(2_000),
        note="Huey: its consumer's defaults (one thread), without its log line per task; it keeps no history. It "
        "looks for work every 0.1 s and, after a longer silence, more rarely (up to 10 s).",
    ),
    Entry(
        name="DBOS",
        package="dbos",
        script="dbos_peer.py",
        note="DBOS: its defaults; it looks for work every second.",
    ),
)

POSTGRES = Goals(
    bare="The bare loop is the driver alone: asyncpg on uvloop, batches of 200, claims on one connection and "
    "completion of the batch before on another, every commit flushed, rows moved to history.",
    bare_inserts="The bare driver inserts by `INSERT … SELECT FROM unnest`, 1,000 rows to a commit, into the live "
    "table of the bare loop with its indexes; one commit per job: a prepared `INSERT` on one connection.",
    drain=Target(0.50),
    two_runners=Target(0.50),
    threads=None,
    unkept=Target(1.0),
    bulk=Target(0.60),
    together=None,
    alone=Target(0.90),
    median=at_most(1.3),
    worst=at_most(3.0),
    held=Target(0.80),
    trickle=at_most(2.0),
    history=Target(0.90),
    waiting=Target(0.80),
)
BESIDE_POSTGRES = (
    Entry(
        name="pgqueuer",
        package="pgqueuer",
        script="pgqueuer_peer.py",
        drain=Share(100_000, Target(2.5)),
        threads=Share(60_000, Target(2.0)),
        bulk=Share(100_000),
        single=Share(2_000),
        note="pgqueuer: asyncpg, uvloop, batches of 1,000; plain functions by `asyncio.to_thread`. A finished job is "
        "deleted and leaves lines in its log.",
    ),
    Entry(
        name="oban",
        package="oban",
        script="oban_peer.py",
        drain=Share(30_000, Target(7.0)),
        bulk=Share(20_000),
        single=Share(2_000),
        note="oban: a limit of 200, uvloop, on the newest Python that is here (it needs 3.12). Its table is not "
        "analysed after filling, which would make it slower.",
    ),
    Entry(
        name="procrastinate",
        package="procrastinate",
        script="procrastinate_peer.py",
        drain=Share(3_000, Target(60.0)),
        threads=Share(3_000),
        bulk=Share(20_000),
        single=Share(2_000),
        note="procrastinate: a concurrency of 20, psycopg's pool.",
    ),
    Entry(
        name="graphile-worker",
        package="graphile",
        script="graphile_peer.cjs",
        node=True,
        drain=Share(200_000, Target(1.0)),
        bulk=Share(100_000),
        single=Share(2_000),
        note="graphile-worker: Node; localQueue 2,000, 24 jobs at once, completions in batches without delay. It "
        "keeps no history.",
    ),
)
