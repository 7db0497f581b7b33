"""The laws among jobs: order (order.py), keys, counts, the end of it all, and what it cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from tests.support.checker.laws import acknowledged_on
from tests.support.checker.lives import Life, Times
from tests.support.checker.order import Found, Jobs, out_of_order
from windlass.core.status import FINISHED

MORE_FILES = 16
MORE_MEMORY = 64 << 20
"""What may be added between two looks at a process and is still no leak."""


def not_unique(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I9: one live job per key, and the second enqueue returns the first job."""
    holders: dict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in times.lives.values():
        for enqueue_jobs in life.enqueues:
            if enqueue_jobs.step != "ok" or enqueue_jobs.facts["key"] is None:
                continue
            if enqueue_jobs.winner == life.id:
                holders[enqueue_jobs.facts["queue"], enqueue_jobs.facts["key"]].append(life)
            else:
                yield from _loser(life, enqueue_jobs.winner, times, jobs)
    for key, lives in holders.items():
        yield from _at_once(key[1], list({life.id: life for life in lives}.values()), times)


def _loser(life: Life, winner: str | None, times: Times, jobs: Jobs) -> Iterator[Found]:
    alone = all(each.winner != life.id for each in life.enqueues)
    if alone and (life.id in jobs or life.runs):
        yield life.id, f"{winner} was said to stand for it, and yet it is there"
    if winner not in times.lives or not times.lives[winner].enqueues:
        yield life.id, f"{winner} is said to be the existing job, and is unknown"


def _at_once(key: str, lives: list[Life], times: Times) -> Iterator[Found]:
    lives.sort(key=acknowledged_on)
    for before, after in pairwise(lives):
        reported = [each for each in (*before.settles, *before.put_backs) if each.answer != "stale"]
        ends = [each.invoked for each in reported if each.status in FINISHED]
        ends += [act.invoked for act in before.acts] + times.silent_put_backs
        if min(ends, default=acknowledged_on(after)) >= acknowledged_on(after):
            yield after.id, f"it was stored while {before.id} held its key {key!r}"


def miscounted(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I16: the counts are a recount."""
    recount = Counter(str(job["status"]) for job in jobs.values())
    reported = {str(status): count for status, count in counts.items() if count}
    if reported != dict(recount):
        yield None, f"the store counts {reported}, and there are {dict(recount)}"


def never_over(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I15: after the last fault the backlog drains, attempt after attempt in bounded time, and no lease is left."""
    healed, drained = times.marks.get("healed"), times.marks.get("drained")
    if healed is None:
        return
    if drained is None:
        yield None, "it was left in peace, and never drained"
        return
    ends = sorted(run.end for life in times.lives.values() for run in life.runs if run.end and run.end > healed["at"])
    pause = max((after - before for before, after in pairwise([healed["at"], *ends])), default=0) / 1e9
    if pause > healed["seconds"]:
        yield None, f"no attempt ended for {pause:.1f} s, and {healed['seconds']} s are allowed"
    if drained.get("leases"):
        yield None, f"leases were left: {drained['leases']}"


def leaking(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I17: descriptors and memory of a process stay flat, and it leaves no zombies."""
    for pid, samples in times.samples.items():
        first, last = samples[0], samples[-1]
        if last["files"] > first["files"] + MORE_FILES:
            yield None, f"process {pid} has {last['files']} descriptors, {first['files']} at first"
        if last["memory"] > first["memory"] * 1.5 + MORE_MEMORY:
            yield None, f"process {pid} has {last['memory'] >> 20} MB, {first['memory'] >> 20} MB at first"
        if last["zombies"]:
            yield None, f"process {pid} has {last['zombies']} zombies"


AMONG: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I8", out_of_order),
    ("I9", not_unique),
    ("I15", never_over),
    ("I16", miscounted),
    ("I17", leaking),
]
