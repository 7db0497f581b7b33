"""A supervisor is killed: its runners are orphans, with the rest of a lease to finish what they run."""

import os
import signal

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import alive, freeze, until


def test_an_orphan_claims_nothing_finishes_what_it_runs_and_exits(stage: Stage) -> None:
    worker = stage.worker("--concurrency", "4", lease="12s")
    orphan = worker.runner()
    running = [*stage.enqueue("block", 1, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(running)
    worker.kill()
    other = stage.worker()
    rest = stage.enqueue("quick", 20)
    until(lambda: len(stage.history.starts(type="quick")) == 20, "the other worker takes over")
    stage.open("gate")
    until(lambda: not alive(orphan), "the orphan exits by itself")
    stage.until_finished()

    history = stage.history
    assert {history.starts(id_)[0].pid for id_ in running} == {orphan}
    assert {history.starts(id_)[0].pid for id_ in rest} == {other.runner()}
    assert [stage.job(id_).attempt for id_ in running] == [1, 1]
    stage.check()
    stage.close_down()


@on_every_store
def test_an_orphan_whose_jobs_do_not_end_is_over_before_they_run_elsewhere(stage: Stage) -> None:
    worker = stage.worker()
    orphan = worker.runner()
    running = [*stage.enqueue("block", 2, gate="gate"), *stage.enqueue("ablock", 2, gate="gate")]
    stage.until_started(running)
    # There before the kill, so that the silence is not taken for an outage, which would grant a grace.
    stage.worker()
    worker.kill()
    until(lambda: all(len(stage.history.starts(id_)) == 2 for id_ in running), "they run elsewhere")
    assert not alive(orphan)
    stage.open("gate")
    stage.until_finished()
    for id_ in running:
        job = stage.job(id_)
        assert (job.attempt, job.failures, job.crashes) == (2, 0, 0)
    stage.check(again=running)
    stage.close_down()


@on_every_store
def test_an_orphan_that_stands_still_is_rescued_when_its_lease_ends(stage: Stage) -> None:
    worker = stage.worker(lease="1s")
    orphan = worker.runner()
    ids = [*stage.enqueue("block", 1, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(ids)
    other = stage.worker(lease="1s")
    freeze([orphan], stage.inside.is_held_up)
    worker.kill()
    until(lambda: all(len(stage.history.starts(id_)) == 2 for id_ in ids), "they run elsewhere")
    os.kill(orphan, signal.SIGCONT)
    until(lambda: not alive(orphan), "awake again, it ends at once")
    stage.open("gate")
    stage.until_finished()
    assert {stage.history.ends(id_)[0].pid for id_ in ids} == {other.runner()}
    assert [(job.attempt, job.rescues, job.crashes) for job in map(stage.job, ids)] == [(2, 1, 0)] * 2
    stage.close_down()


def test_what_an_orphan_has_prefetched_is_requeued_at_once(stage: Stage) -> None:
    stage.enqueue("quick", 300)
    blocked = stage.enqueue("block", 2, gate="gate")
    stage.enqueue("quick", 100)
    worker = stage.worker("--concurrency", "2", lease="60s")
    stage.until_started(blocked)
    worker.kill()
    stage.worker()
    # Long before the lease ends: the gate is still closed.
    until(lambda: len(stage.history.ends(type="quick")) == 400, "others run them")
    stage.open("gate")
    stage.until_finished()
    stage.check()
    stage.close_down()


@pytest.mark.parametrize("first", ["supervisor", "runner"])
def test_when_both_are_killed_another_worker_rescues_long_before_the_lease_ends(stage: Stage, first: str) -> None:
    worker = stage.worker("--concurrency", "3", lease="10m")
    other = stage.worker("--concurrency", "3", lease="10m", app="shop:app")
    ids = stage.enqueue("block", 6, gate="gate")
    stage.until_started(ids)
    runner = worker.runner()
    lost = [effect.job for effect in stage.history.starts() if effect.pid == runner]
    for pid in (worker.pid, runner) if first == "supervisor" else (runner, worker.pid):
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    stage.open("gate")
    stage.until_finished()
    assert lost
    assert {effect.pid for effect in stage.history.ends()} == {other.runner()}
    assert all((job.failures, job.crashes) == (0, 0) for job in stage.all_jobs())
    stage.check(again=lost)
    stage.close_down()
