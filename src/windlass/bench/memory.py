"""Memory: what a runner occupies while it works off very many jobs."""

from windlass.bench import labour
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Base, Line, Lines, Row, Section, Target
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour, Sample

FLAT = Target(1.10, at_least=False)
MIB = 1024 * 1024
SHARES = (10, 50, 100)


def measure(ground: Ground) -> Section:
    """One drain, watched from outside; who looks asks the kernel, not the runner."""
    jobs = ground.scale.memory
    ground.say(f"memory: handing in {jobs:,} jobs")
    with ground.store() as address:
        labour.fill(address, jobs)
        ground.say(f"memory: draining {jobs:,} jobs")
        drained = Labour(address, ground.folder).drain()
        finishes = ground.yardstick.finishes(address)
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
    """The memory when so many jobs were completed: the first sample from then on, else the last one."""
    if not curve:
        raise BenchFailed("the drain was over before anybody could look at it")
    return next((memory for done, memory in curve if done >= jobs), curve[-1][1])
