"""What versus.py runs of each revision: public names alone. `python -m versus_app produce JOBS`, or `wait`."""

import json
import statistics
import sys
import time

from windlass import App

BATCH = 1_000
SINGLES = 2_000
WAITS = 300

app = App()


@app.task
async def nothing() -> None:
    """What is drained."""


@app.task
async def moment() -> int:
    """When it started, by a clock that all processes of the machine share."""
    return time.monotonic_ns()


def produce(jobs: int) -> dict[str, float]:
    """Rates of enqueueing in batches, and one by one."""
    app.stats.counts()  # the store is made, and connected to
    began = time.monotonic()
    for _ in range(jobs // BATCH):
        app.enqueue_many([nothing.job() for _ in range(BATCH)])
    bulk = time.monotonic()
    for _ in range(SINGLES):
        nothing.enqueue()
    ended = time.monotonic()
    stored = app.stats.counts().queues["default"]["pending"]
    if stored != jobs + SINGLES:
        sys.exit(f"{stored} jobs are stored, not {jobs + SINGLES}")
    return {"bulk": jobs / (bulk - began), "single": SINGLES / (ended - bulk), "singles": SINGLES}


def wait() -> dict[str, float]:
    """How long jobs take from the call until they start, one at a time, on a worker that has nothing else to do."""
    moment.enqueue().result(timeout=60)
    waited = []
    for _ in range(WAITS):
        began = time.monotonic_ns()
        waited.append((moment.enqueue().result(timeout=60) - began) / 1_000)
    waited.sort()
    return {"latency": statistics.median(waited), "p99": waited[int(WAITS * 0.99)]}


if __name__ == "__main__":
    figures = produce(int(sys.argv[2])) if sys.argv[1] == "produce" else wait()
    print(json.dumps(figures))
    app.close()
