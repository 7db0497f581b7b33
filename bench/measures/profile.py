"""Profile: processor time per job by thread and function, and commits per job."""

from collections import defaultdict
from pathlib import Path

import msgspec

from bench.context import BenchContext
from bench.probes import probe
from bench.report.figures import Base, Listing, Row, Section, bars
from bench.usage import Usage
from bench.worker import Worker, fill
from windlass.bench.process import BenchFailed

MAX_FUNCTIONS = 15
MAX_THREADS = 2
UNIT = "µs/job"
PROBED = "bench.probes.app:app"
COUNTING_TRIPS = "bench.probes.trips_app:app"
COUNTING_IN_THE_DRIVER = (
    "Commits are counted by a hook of the driver in a run of its own: those of the runner that write."
)
COUNTING_AT_THE_SERVER = (
    "Commits (of Redis: scripts) and write-ahead log as the server counts them over a run of its own: "
    "the supervisor's, the runner's, also those that only read. Round trips: messages that the runner's driver sent."
)


class Thread(msgspec.Struct, frozen=True):
    """The profile of one thread: its number of calls, and the own seconds of each function."""

    name: str
    calls: int
    seconds: dict[str, float]


def measure(context: BenchContext) -> Section:
    """Drains without probes for the processor time, less that of an empty one; then one with each probe."""
    jobs, spent, bare = context.scale.drain, list[Usage](), list[float]()
    for _ in context.rounds("profile"):
        bare.append(context.store_bench.bare_drain(jobs).cpu * 1e6)
        spent.append(_spent(context, jobs))
    counted = _counted(context, jobs)
    rows = [
        _row("runner, in all", [each.cpu for each in spent], jobs, bare),
        _row("of it: event loop's thread", [each.loop for each in spent], jobs),
        _row("of it: other threads (the store's)", [each.threads for each in spent], jobs),
        _row("of it: in the kernel", [each.system for each in spent], jobs),
        *counted,
    ]
    return Section(
        name="profile",
        title=f"Profile: {jobs:,} no-op async jobs, one runner",
        rows=rows,
        charts=[bars("Processor time per job", rows[:4])],
        listings=_functions(context, jobs),
        notes=[
            "Processor time of the runner's process and its threads, as the kernel counts it in hundredths of "
            "a second, less that of a runner that starts, finds nothing and ends.",
            COUNTING_AT_THE_SERVER if len(counted) > 1 else COUNTING_IN_THE_DRIVER,
            "By function: cProfile in a run of its own, which makes every call more expensive and counts waiting "
            "as time; read the order, not the sums. Not run from Python 3.12 on, where it cannot tell threads apart.",
        ],
    )


def _row(name: str, seconds: list[float], jobs: int, bare: list[float] | None = None) -> Row:
    base = Base("bare loop", bare) if bare else None
    return Row(name=name, unit=UNIT, rounds=[each / jobs * 1e6 for each in seconds], base=base)


def _spent(context: BenchContext, jobs: int) -> Usage:
    """The processor time of a runner for the jobs alone."""
    empty, full = _last_usage(context, 0), _last_usage(context, jobs)
    return Usage(
        loop=full.loop - empty.loop,
        threads=full.threads - empty.threads,
        user=full.user - empty.user,
        system=full.system - empty.system,
        resident=full.resident,
    )


def _last_usage(context: BenchContext, jobs: int) -> Usage:
    """The last usage of a runner that was read from the kernel."""
    with context.store() as address:
        fill(address, jobs)
        drained = Worker(address, context.folder).drain(every=0.02)
    if len(drained.samples) != 1:
        raise BenchFailed("the runner was not seen, or there was more than one")
    return next(iter(drained.samples.values()))[-1].usage


def _counted(context: BenchContext, jobs: int) -> list[Row]:
    """Commits by the driver's hook; where there is a server by its own count, and round trips and log too."""
    context.progress("profile: counting commits")
    folder = context.scratch()
    commits, trips = folder / "commits", folder / "trips"
    with context.store() as address:
        fill(address, jobs)
        before = context.store_bench.counters(address)
        if before is None:
            Worker(address, context.folder, {probe.COMMITS: str(commits)}, PROBED).drain()
            return [_per_thousand("commits", probe.read_count(commits), jobs)]
        Worker(address, context.folder, {probe.TRIPS: str(trips)}, COUNTING_TRIPS).drain()
        after = context.store_bench.counters(address)
    if after is None:
        raise BenchFailed("the server does not count any more")
    return [
        _per_thousand("commits", after.commits - before.commits, jobs),
        _per_thousand("round trips", probe.read_count(trips), jobs),
        Row(name="write-ahead log", unit="bytes/job", rounds=[(after.log_bytes - before.log_bytes) / jobs]),
    ]


def _per_thousand(name: str, count: int, jobs: int) -> Row:
    return Row(name=name, unit="per 1,000 jobs", rounds=[1000 * count / jobs])


def _functions(context: BenchContext, jobs: int) -> list[Listing]:
    """The most expensive functions of the two busiest threads."""
    if not probe.can_profile():
        return []
    context.progress("profile: by function")
    folder = context.scratch()
    with context.store() as address:
        fill(address, jobs)
        Worker(address, context.folder, {probe.PROFILES: str(folder)}, PROBED).drain()
    threads = [_read(path) for path in folder.glob("*.profile")]
    # By calls, since waiting counts as time.
    busiest = sorted(threads, key=lambda thread: thread.calls, reverse=True)[:MAX_THREADS]
    return [_listing(thread, jobs) for thread in busiest]


def _listing(thread: Thread, jobs: int) -> Listing:
    found = sorted(thread.seconds.items(), key=lambda each: each[1], reverse=True)[:MAX_FUNCTIONS]
    lines = [(place, 1e6 * taken / jobs) for place, taken in found]
    return Listing(f"By function, thread `{thread.name}`", UNIT, lines)


def _read(path: Path) -> Thread:
    seconds: dict[str, float] = defaultdict(float)
    calls = 0
    for line in path.read_text().splitlines():
        taken, called, place = line.split("\t", 2)
        seconds[place] += float(taken)
        calls += int(called)
    return Thread(path.stem, calls, seconds)
