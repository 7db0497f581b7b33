"""Faults in any order: first nothing may go wrong, then, left in peace, everything must come to its end."""

import os
import random
import signal
from collections.abc import Callable

import pytest

from tests.e2e.stage import Stage
from tests.support.processes import Process, freeze, let_pass, signal_all

# More of them by CHAOS_SEEDS=2,3,4: each is another order of faults.
SEEDS = [int(seed) for seed in os.environ.get("CHAOS_SEEDS", "1").split(",")]
FAULTS = 10


class Chaos:
    """Two workers on which a seeded choice of faults falls."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._random = random.Random(seed)
        self._workers = [self._start(), self._start()]

    def _start(self) -> Process:
        options = ("--concurrency", "4", "--processes", str(self._random.randint(1, 2)), "--drain", "1s")
        return self._stage.worker(*options, lease="1s")

    def fault(self) -> None:
        """One fault on one of the workers; one that it ended is replaced."""
        place = self._random.randrange(2)
        worker = self._workers[place]
        kills: list[Callable[[Process], None]] = [self._kill_runner, self._kill_supervisor, self._kill_all]
        self._random.choice([*kills, self._stop, self._stall, self._kill_runner])(worker)
        if worker.ended:
            self._workers[place] = self._start()

    def _kill_runner(self, worker: Process) -> None:
        signal_all(worker.runners()[:1], signal.SIGKILL)

    def _kill_supervisor(self, worker: Process) -> None:
        worker.kill()

    def _kill_all(self, worker: Process) -> None:
        tree = worker.tree()
        self._random.shuffle(tree)
        signal_all(tree, signal.SIGKILL)
        worker.wait()

    def _stop(self, worker: Process) -> None:
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0

    def _stall(self, worker: Process) -> None:
        tree = self._random.choice([worker.tree(), [worker.pid], worker.runners()])
        freeze(tree, self._stage.inside.is_held_up)
        let_pass(self._random.uniform(0.1, 1.5))
        signal_all(tree, signal.SIGCONT)


@pytest.mark.extended  # make test has the minutes of tests/torture
@pytest.mark.parametrize("seed", SEEDS)
def test_no_job_is_lost_or_overlaps_itself_whatever_happens(stage: Stage, seed: int) -> None:
    print(f"seed {seed}")
    chaos = Chaos(stage, seed)
    for _ in range(FAULTS):
        # Crashes must not use these jobs up: that is what other tests are about.
        jobs = [stage.make(type, {"max_attempts": 1000}) for type in ("nap", "anap", "quick") * 30]
        stage.enqueue_all(jobs)
        chaos.fault()
    stage.until_finished()

    stage.history.check()
    jobs_after = stage.all_jobs()
    assert {job.id for job in jobs_after} == set(stage.ids)
    for job in jobs_after:
        counted = job.failures + job.crashes + job.suspicions + job.rescues + job.requeues
        assert (job.status, job.failures) == ("completed", 0) or job.reason == "crashed its runner 3 times"
        assert job.attempt <= counted + 1
        assert len(stage.history.starts(job.id)) <= job.attempt
        assert len(stage.history.ends(job.id)) >= (job.status == "completed")
    stage.close_down()
