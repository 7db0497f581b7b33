"""After many jobs of every kind, good and bad: descriptors, processes, zombies, threads and memory are as before."""

from pathlib import Path

import msgspec
import pytest

from tests.e2e.stage import Stage
from tests.support.processes import Process, processes, until

SLOTS = 4
GROWTH = 48 << 20
"""Bytes that a process may grow by between the first batch and the last: allocators keep some."""


class Use(msgspec.Struct, frozen=True):
    """What a process takes."""

    descriptors: int
    threads: int
    children: int
    zombies: int
    memory: int


def stat(pid: int) -> list[str]:
    """The fields after the name; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def use(pid: int) -> Use:
    fields = stat(pid)
    children = [found[0] for each in processes() if len(found := stat(each)) > 1 and int(found[1]) == pid]
    return Use(
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(fields[17]),
        children=len(children) - children.count("Z"),
        zombies=children.count("Z"),
        memory=int(fields[21]) * 4096,
    )


def enqueue_batch(den: Stage) -> list[str]:
    """About 250 jobs; the ids of those that end badly."""
    bad = [
        *den.enqueue("process.die", 3, {"max_attempts": 2}, what="SIGKILL"),
        *den.enqueue("process.die", 3, {"max_attempts": 1}, what="exit 0"),
        *den.enqueue("process.wait", 2, {"max_attempts": 1, "timeout": 0.2}, gate="never"),
        *den.enqueue("async.wait", 10, {"max_attempts": 1, "timeout": 0.2}, gate="never"),
        *[id_ for kind in ("async", "thread", "process")
          for id_ in den.enqueue(f"{kind}.raise", 10, {"max_attempts": 1}, what="circle")],
    ]  # fmt: skip
    den.enqueue("leave_child", 2, how="setsid")
    den.enqueue("shout", 1, megabytes=2, ending="\n")
    den.enqueue("process.quick", 60, what="")
    den.enqueue("thread.quick", 70, what="")
    den.enqueue("async.quick", 70, what="")
    return bad


def settled(den: Stage, pid: int) -> Use:
    """When the last processes of a batch have been cleared away."""
    den.until_finished()
    until(lambda: use(pid).zombies == 0, "no zombie is left")
    return use(pid)


def assert_flat(first: Use, last: Use) -> None:
    """Up to one waiting process per slot, with two descriptors each; a leak would be of hundreds."""
    assert last.children <= SLOTS, (first, last)
    assert last.descriptors <= first.descriptors + 2 * SLOTS + 2, (first, last)
    # Threads for slots are made when they are first needed.
    assert last.threads <= first.threads + SLOTS + 2, (first, last)
    assert last.memory <= first.memory + GROWTH, (first, last)


@pytest.mark.extended
def test_a_runner_takes_no_more_after_a_thousand_jobs_than_after_the_first(den: Stage) -> None:
    bad = enqueue_batch(den)
    worker = den.worker("--concurrency", str(SLOTS), "--recycle-jobs", "20", app="rogues:app")
    runner = worker.runner()
    first = (settled(den, runner), settled(den, worker.pid))
    for _ in range(3):
        bad += enqueue_batch(den)
        last = (settled(den, runner), settled(den, worker.pid))
    assert worker.runners() == [runner]
    assert_flat(first[0], last[0])
    assert_flat(first[1], last[1])
    assert len(den.ids) >= 900
    den.check(unfinished=bad)
    den.close_down()


def test_a_supervisor_takes_no_more_after_many_runners_than_after_the_first(den: Stage) -> None:
    worker = den.worker("--concurrency", str(SLOTS), app="rogues:app")
    kill_runner(den, worker)
    first = settled(den, worker.pid)
    for _ in range(3):
        kill_runner(den, worker)
    assert_flat(first, settled(den, worker.pid))
    den.close_down()


def kill_runner(den: Stage, worker: Process) -> None:
    before = worker.runner()
    id_ = den.enqueue_one("thread.die", {"max_attempts": 1}, what="SIGKILL")
    den.until_status(id_, "dead")
    until(lambda: worker.runners() not in ([], [before]), "the runner is replaced")
    den.until_status(den.enqueue_one("thread.quick", what=""), "completed")
