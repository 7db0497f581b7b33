"""RQ with SimpleWorker, which does not fork for each job and so is its fastest; results are kept for 500 s."""

import json
import os
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path

from redis import Redis
from rq import Queue, SimpleWorker

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PAYLOAD = {"n": 1, "s": "x" * 64}
CHUNK = 1000

# Jobs name their function by its module: as a script this one has no name that a worker could import.
sys.path.insert(0, str(Path(__file__).parent))
sys.modules.setdefault("rq_peer", sys.modules[__name__])
queue = Queue("bench", connection=Redis.from_url(os.environ["BENCH_STORE"]))
calls: list[float] = []


def noop(n: int, s: str) -> None:
    """Nothing; the times of the calls are all that is kept of a drain."""
    calls.append(time.perf_counter())


def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


def fill() -> None:
    """One call for each."""
    began = time.perf_counter()
    for _ in range(JOBS):
        queue.enqueue("rq_peer.noop", **PAYLOAD)
    _say(time.perf_counter() - began)


def bulk() -> None:
    """Its bulk verb, 1,000 to a call."""
    began = time.perf_counter()
    for start in range(0, JOBS, CHUNK):
        size = min(CHUNK, JOBS - start)
        queue.enqueue_many([Queue.prepare_data("rq_peer.noop", kwargs=PAYLOAD) for _ in range(size)])
    _say(time.perf_counter() - began)


def group() -> None:
    """Its bulk verb for the members, and one job that depends on all of them."""
    began = time.perf_counter()
    members = [
        member
        for start in range(0, JOBS, CHUNK)
        for member in queue.enqueue_many(
            [Queue.prepare_data("rq_peer.noop", kwargs=PAYLOAD) for _ in range(min(CHUNK, JOBS - start))]
        )
    ]
    queue.enqueue("rq_peer.ended", depends_on=members)
    _say(time.perf_counter() - began)


def drain_group() -> None:
    """From the first start of a member until the job that depends on them starts."""
    _worker().work(burst=True, logging_level="ERROR")
    raise SystemExit("what runs after the group did not run")


def ended() -> None:
    """What runs after a group."""
    assert len(calls) == JOBS
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


def drain() -> None:
    """In burst mode, from the first start until no job is left."""
    _worker().work(burst=True, logging_level="ERROR")
    assert len(calls) == JOBS
    _say(time.perf_counter() - calls[0])


def serve() -> None:
    """An idle worker, until it is killed."""
    _worker().work(logging_level="ERROR")


def _worker() -> SimpleWorker:
    return SimpleWorker([queue], connection=queue.connection)


def produce() -> None:
    """Enqueue with pauses."""
    pauses = random.Random(1)
    for _ in range(JOBS):
        time.sleep(pauses.uniform(0.05, 0.15))
        queue.enqueue("rq_peer.stamp", time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("rq"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    verbs = {"fill": fill, "bulk": bulk, "drain": drain, "serve": serve, "produce": produce}
    {**verbs, "group": group, "drain_group": drain_group}[sys.argv[1]]()
