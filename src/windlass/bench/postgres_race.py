"""Bare loops of PostgreSQL, in processes of their own: what they reach together."""

import msgspec

from windlass.bench.loops import run_loops
from windlass.bench.postgres_loops import Drained
from windlass.bench.yardstick import BareDrain

MODULE = "windlass.bench.postgres_loops"


def race(dsn: str, loops: int) -> BareDrain:
    """What so many loops reach together on the same tables, and the processor time that a job took them."""
    said = run_loops(MODULE, dsn, [("drain", 0)] * loops)
    drained = [msgspec.json.decode(line, type=Drained) for line in said]
    jobs = sum(each.jobs for each in drained)
    taken = max(each.ended for each in drained) - min(each.began for each in drained)
    return BareDrain(jobs / taken, sum(each.cpu for each in drained) / jobs)


def wake(dsn: str, jobs: int) -> list[float]:
    """Milliseconds from hand-in in one process to claimed in another, which listens."""
    return msgspec.json.decode(run_loops(MODULE, dsn, [("listen", jobs), ("produce", jobs)])[0], type=list[float])
