"""Memory of a runner while it runs very many jobs."""

from bench.context import BenchContext
from bench.report.figures import Base, Line, Lines, Row, Section, Target
from bench.worker import Sample, Worker, fill
from windlass.bench.process import BenchFailed

FLAT = Target(1.10, at_least=False)
MIB = 1024 * 1024
SHARES = (10, 50, 100)


def measure(context: BenchContext) -> Section:
    """One drain, sampled through the kernel, not by the runner."""
    jobs = context.scale.memory
    context.progress(f"memory: enqueueing {jobs:,} jobs")
    with context.store() as address:
        fill(address, jobs)
        context.progress(f"memory: draining {jobs:,} jobs")
        drained = Worker(address, context.folder).drain()
        finishes = context.store_bench.finishes(address)
    if sum(count for _, count in finishes) != jobs or len(drained.samples) != 1:
        raise BenchFailed(f"not all of {jobs:,} jobs were completed by one runner")
    curve = grown(next(iter(drained.samples.values())), finishes)
    at = {share: _at(curve, jobs * share / 100) for share in SHARES}
    base = Base("after 10 % of the jobs", [at[10]])
    rows = [
        Row(name="after 10 % of the jobs", unit="MiB", rounds=[at[10]]),
        Row(name="after 50 % of the jobs", unit="MiB", rounds=[at[50]], base=base, target=FLAT),
        Row(name="after all jobs", unit="MiB", rounds=[at[100]], base=base, target=FLAT),
    ]
    return Section(
        name="memory",
        title=f"Memory: a runner over {jobs:,} jobs",
        rows=rows,
        charts=[Lines("Resident memory of the runner", "jobs completed", "MiB", [Line("Windlass", curve)])],
        notes=[
            "One drain with default settings. Resident memory as the kernel counts it, looked at ten times a second."
        ],
    )


def grown(samples: list[Sample], finishes: list[tuple[float, int]]) -> list[tuple[float, float]]:
    """(jobs completed so far, MiB) at every sample from the first completion on."""
    curve, done, left = [], 0, list(reversed(finishes))
    for sample in samples:
        while left and left[-1][0] <= sample.at:
            done += left.pop()[1]
        if done:
            curve.append((float(done), sample.usage.resident / MIB))
    return curve


def _at(curve: list[tuple[float, float]], jobs: float) -> float:
    """The memory at that number of completed jobs: the first sample from then on, else the last one."""
    if not curve:
        raise BenchFailed("the drain ended before its memory was sampled")
    return next((memory for done, memory in curve if done >= jobs), curve[-1][1])
