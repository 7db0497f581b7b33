"""What several nodes should give, on paper: writes docs/pictures/machines.svg, and prints the model and the figures.

A claimer claims a batch, completes it, and claims the next. With one claimer a batch of b jobs takes

    T(b) = 2 (r + f) + b c

r: a round trip; f: the fixed cost of a statement; c: the cost of a job. f and c come from the measure `round-trips`
of docs/benchmarks/results.json, as far as it was run. Then, for k claimers, N nodes of p processors, R replicas:

    rate = min(k b / T(b), turns b / H(b), N p / (R c))

The first is what claimers ask for. The second is the lock: in strict order one claim of a queue at a time holds its
turn, for H(b), the claim and its commit; in loose order four, each with a quarter of the buckets. The third is the
processors: every change is applied R times. On Redis Cluster a queue has one turn: a script at a time.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.report.figures import Line, Lines
from bench.report.svg import draw

from windlass.store.postgres.limits.bucket_turns import PARALLEL

ROOT = Path(__file__).parent.parent
RESULTS, PICTURE = ROOT / "docs/benchmarks/results.json", ROOT / "docs/pictures/machines.svg"
ROUND_TRIP = 0.002
NODES = (1, 3, 6, 9, 12, 18, 24)
BATCH, CLAIMERS_PER_NODE, PROCESSORS, REPLICAS, QUEUES = 100, 4, 4, 3, 12


class Costs(NamedTuple):
    """Seconds."""

    statement: float
    job: float
    measured: bool


ASSUMED = {"PostgreSQL": Costs(0.0008, 0.00012, False), "profile, strict order": Costs(0.0016, 0.00018, False)}
"""Until they are measured: estimates, and marked so in what is printed."""
ASSUMED_REDIS_JOB = 0.00006
"""Processor seconds of a master per job, claimed and completed, until `cluster` is measured."""
REDIS_ROW = "one queue: its master"
TURNS = {"profile, strict order": 1, "profile, loose order": PARALLEL}
"""Claims of one queue that run at once; PostgreSQL has no turns."""


def batch_seconds(costs: Costs, batch: int, round_trip: float = ROUND_TRIP) -> float:
    """T(b): a claim and a settlement."""
    return 2 * (round_trip + costs.statement) + batch * costs.job


def hold_seconds(costs: Costs, batch: int, round_trip: float = ROUND_TRIP) -> float:
    """H(b): for how long a claim holds its turn; a commit waits for a majority."""
    return round_trip + costs.statement + batch * costs.job / 2


def rate(costs: Costs, nodes: int, *, queues: int, turns: int, batch: int = BATCH) -> float:
    """Jobs per second of a cluster of SQL nodes; `turns` claims of one queue may run at once."""
    asked = nodes * CLAIMERS_PER_NODE * batch / batch_seconds(costs, batch)
    locked = queues * turns * batch / hold_seconds(costs, batch)
    processors = nodes * PROCESSORS / (min(REPLICAS, nodes) * costs.job)
    return min(asked, locked, processors)


def redis_rate(nodes: int, queues: int, job: float = ASSUMED_REDIS_JOB) -> float:
    """Jobs per second of a Redis Cluster: as many masters work as have a queue."""
    return min(nodes, queues) / job


def on_paper(name: str, costs: Costs, batch: int, claimers: int) -> float:
    """What the model says of a cell of `round-trips`: one queue, one server, whose processors the claimers share."""
    asked = claimers * batch / batch_seconds(costs, batch)
    locked = TURNS[name] * batch / hold_seconds(costs, batch) if name in TURNS else asked
    return min(asked, locked, 1 / costs.job)


def _rows(measure: str) -> Iterable[tuple[str, float]]:
    """Name and median of the published rows of a measure."""
    for result in json.loads(RESULTS.read_text()).get("results", []):
        section = result["section"]
        for row in section["rows"] if section["name"] == measure else []:
            rounds = sorted(row["rounds"])
            yield row["name"], rounds[len(rounds) // 2]


def measured() -> dict[str, dict[tuple[int, int], float]]:
    """Profile → (batch, claimers) → jobs per second, from the published figures."""
    found: dict[str, dict[tuple[int, int], float]] = {}
    for name, rate_found in _rows("round-trips"):
        profile, _, rest = name.partition(": batches of ")
        batch, claimers = rest.removesuffix("s").removesuffix(" claimer").split(", ")
        found.setdefault(profile, {})[int(batch), int(claimers)] = rate_found
    return found


def redis_job() -> tuple[float, bool]:
    """Processor seconds of a master per job, and whether they were measured."""
    found = [micros / 1e6 for name, micros in _rows("cluster") if name == REDIS_ROW]
    return (found[0], True) if found else (ASSUMED_REDIS_JOB, False)


def fitted(cells: dict[tuple[int, int], float]) -> Costs:
    """Least squares of T(b) = 2 (r + f) + b c, over the batches of one claimer."""
    points = [(batch, batch / found) for (batch, claimers), found in cells.items() if claimers == 1]
    mean_b, mean_t = (sum(point[i] for point in points) / len(points) for i in (0, 1))
    spread = sum((b - mean_b) ** 2 for b, _ in points)
    job = sum((b - mean_b) * (t - mean_t) for b, t in points) / spread
    return Costs(max(0.0, (mean_t - job * mean_b) / 2 - ROUND_TRIP), job, True)


def lines(costs: Costs) -> Iterable[Line]:
    """One line per way to use the nodes."""
    ways = {"one queue, strict": (1, 1), "one queue, loose": (1, PARALLEL), "12 queues, strict": (QUEUES, 1)}
    for name, (queues, turns) in ways.items():
        yield Line(name, [(nodes, rate(costs, nodes, queues=queues, turns=turns)) for nodes in NODES])
    yield Line("Redis, 12 queues", [(nodes, redis_rate(nodes, QUEUES, redis_job()[0])) for nodes in NODES])


def main() -> None:
    """Print, and draw."""
    cells = measured()
    for name, assumed in ASSUMED.items():
        costs = fitted(cells[name]) if name in cells else assumed
        said = "measured" if costs.measured else "assumed, not measured yet"
        print(f"{name}: {1e3 * costs.statement:.2f} ms per statement, {1e6 * costs.job:.0f} µs per job ({said})")
        for (batch, claimers), found in sorted(cells.get(name, {}).items()):
            paper = on_paper(name, costs, batch, claimers)
            print(f"  batches of {batch}, {claimers} claimers: {found:,.0f} jobs/s, on paper {paper:,.0f}")
    job, known = redis_job()
    print(f"Redis: {1e6 * job:.0f} µs of a master per job ({'measured' if known else 'assumed, not measured yet'})")
    title = f"On paper: {ROUND_TRIP * 1e3:g} ms between nodes, batches of {BATCH}"
    PICTURE.write_text(draw(Lines(title, "nodes", "jobs/s", list(lines(costs)))))
    for line in lines(costs):
        print(line.name, ", ".join(f"{nodes:g}: {found:,.0f}" for nodes, found in line.points))


if __name__ == "__main__":
    main()
