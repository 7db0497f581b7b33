"""Containers that share the folder of a store, each with its own boot id and boot clock: they share the locks."""

import signal
import subprocess
import sys
from functools import cache

import pytest

from tests.e2e.conftest import stage
from tests.e2e.stage import Stage
from tests.faults import contained
from tests.support.addresses import on_sqlite
from tests.support.processes import Process, let_pass, signal_all, until
from windlass.store.clock import since_boot

__all__ = ["stage"]

AHEAD = 1_000_000
CLOCK = "from windlass.store.clock import SystemClock; clock = SystemClock(); print(clock.boot, clock.since_boot())"


def inside(boot: str, seconds: int, *arguments: str) -> list[str]:
    return [contained.__file__, boot, str(seconds), *arguments]


@cache
def why_not() -> str:
    """Why there can be no containers here."""
    look = "import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))"
    ran = subprocess.run([sys.executable, *inside("b", AHEAD, "-c", look)], capture_output=True, text=True)
    if ran.returncode:
        return f"no namespaces here: {ran.stderr.splitlines()[-1]}"
    return "" if float(ran.stdout) > AHEAD else "this kernel does not enter a time namespace at exec"


@pytest.fixture(autouse=True)
def _containers() -> None:
    if why_not():
        pytest.skip(why_not())


def worker(stage: Stage, boot: str, seconds: int, *, lease: str, queue: str = "default") -> Process:
    """A worker in a container, which claims."""
    run = ("-m", "windlass", "worker", "shop:app", "--lease", lease, "--concurrency", "4", "--queues", queue)
    process = stage.processes.start(f"worker-{boot}", *inside(boot, seconds, *run))
    stage.workers.append(process)
    stage.until_ready(process)
    return process


def test_the_boot_clock_is_the_machines_in_every_time_namespace() -> None:
    before = since_boot()
    ran = subprocess.run(
        [sys.executable, *inside("a-boot-id", AHEAD, "-c", CLOCK)], capture_output=True, text=True, check=True
    )
    boot, then = ran.stdout.split()
    assert boot == "a-boot-id"
    assert before <= int(then) <= since_boot()


@on_sqlite
def test_no_job_runs_twice_under_workers_with_boot_ids_and_clocks_of_their_own(stage: Stage) -> None:
    first = worker(stage, "first", 0, lease="1s")
    held = stage.enqueue("block", 2, gate="gate") + stage.enqueue("ablock", 2, gate="gate")
    stage.until_started(held)
    second = worker(stage, "second", AHEAD, lease="1s")
    stage.enqueue("quick", 20)
    let_pass(3)
    stage.open("gate")
    stage.until_finished()
    assert not first.ended
    assert not second.ended
    stage.check()
    stage.close_down()


@on_sqlite
def test_an_orphan_keeps_its_jobs_until_its_lease_ends_and_those_of_the_dead_are_rescued_at_once(
    stage: Stage,
) -> None:
    orphaned, held = (stage.enqueue("block", 1, {"queue": queue}, gate="gate") for queue in ("default", "images"))
    first = worker(stage, "first", 0, lease="60s", queue="default")
    dead = worker(stage, "dead", 0, lease="60s", queue="images")
    stage.until_started(orphaned + held)
    first.kill()
    worker(stage, "second", AHEAD, lease="60s", queue="images")
    signal_all(dead.tree(), signal.SIGKILL)
    until(lambda: stage.job(held[0]).attempt == 2, "the job of the dead is rescued")
    assert [stage.job(id_).attempt for id_ in orphaned] == [1]
    stage.open("gate")
    stage.until_finished()
    stage.check(again=held)
