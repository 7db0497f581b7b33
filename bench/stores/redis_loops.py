"""Bare loops of Redis as processes of their own: `python -m bench.stores.redis_loops WHAT DSN JOBS`.

A loop connects, says that it is ready, waits for a line, and at its end prints one line of JSON.
"""

import json
import random
import sys
import time
from collections.abc import Callable

import msgspec

from bench.stores.redis_bare import Bare


def listen(bare: Bare, jobs: int) -> list[float]:
    """BLPOP of a marker, then a claim: milliseconds from enqueue to claimed, of each job."""
    # The first claim loads its script, as an idle worker has done.
    bare.claim()
    _ready()
    taken: list[float] = []
    while len(taken) < jobs:
        bare.wait()
        if found := bare.claim():
            now = time.monotonic_ns()
            taken += [(now - json.loads(payload)["sent"]) / 1e6 for payload in found[2::4]]
            bare.complete(found[::4])
    return taken


def produce(bare: Bare, jobs: int) -> int:
    """Enqueue with the pauses of all producers."""
    pauses = random.Random(1)
    _ready()
    for _ in range(jobs):
        time.sleep(pauses.uniform(0.05, 0.15))
        bare.enqueue(json.dumps({"n": 1, "s": "x" * 64, "sent": time.monotonic_ns()}))
    return jobs


def _ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


LOOPS: dict[str, Callable[[Bare, int], object]] = {"listen": listen, "produce": produce}


if __name__ == "__main__":
    print(msgspec.json.encode(LOOPS[sys.argv[1]](Bare(sys.argv[2]), int(sys.argv[3]))).decode(), flush=True)
