"""A stall is not a death: on one machine a lock proves life, so a stopped worker loses nothing."""

import signal
import time

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import freeze, let_pass, signal_all


def test_a_worker_stopped_for_longer_than_its_lease_loses_nothing(stage: Stage) -> None:
    worker = stage.worker("--concurrency", "3", lease="1s")
    ids = [*stage.enqueue("block", 2, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(ids)
    other = stage.worker(lease="1s")
    tree = worker.tree()
    freeze(tree, stage.inside.is_held_up)
    stage.enqueue("quick", 10)
    let_pass(3)
    assert [(job.status, job.attempt) for job in map(stage.job, ids)] == [("running", 1)] * 3
    signal_all(tree, signal.SIGCONT)
    stage.open("gate")
    stage.until_finished()

    history = stage.history
    assert {effect.pid for effect in history.starts(type="quick")} == {other.runner()}
    assert {history.ends(id_)[0].pid for id_ in ids} == {worker.runner()}
    stage.check()
    stage.close_down()


@on_every_store
def test_a_runner_whose_supervisor_is_stopped_starts_nothing_past_its_lease(stage: Stage) -> None:
    worker = stage.worker("--concurrency", "3", lease="1s")
    running = [*stage.enqueue("block", 1, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(running)
    freeze([worker.pid], stage.inside.is_held_up)
    stopped = time.monotonic_ns()
    let_pass(1.2)
    late = stage.enqueue("quick", 5)
    let_pass(1)
    stage.open("gate")
    for id_ in running:
        stage.until_status(id_, "completed")
    continued = time.monotonic_ns()
    worker.send(signal.SIGCONT)
    stage.until_finished()

    starts = [effect.at for effect in stage.history.starts()]
    assert [at for at in starts if stopped + 1_000_000_000 <= at < continued] == []
    assert all(stage.history.starts(id_)[0].at > continued for id_ in late)
    stage.check()
    stage.close_down()


@on_every_store
def test_a_stopped_runner_gives_up_what_it_has_not_started_and_keeps_what_it_has(stage: Stage) -> None:
    stage.enqueue("quick", 300)
    blocked = stage.enqueue("block", 2, gate="gate")
    stage.enqueue("quick", 100)
    worker = stage.worker("--concurrency", "2", lease="1s")
    stage.until_started(blocked)
    # Outcomes that a stopped runner has not written yet are its own until it goes on.
    stage.until_counts("completed", 300)
    freeze([worker.runner()], stage.inside.is_held_up)
    other = stage.worker(lease="1s")
    stage.open("gate")
    # Everything but the two that had started ends while the runner is stopped.
    stage.until_counts("completed", 400)
    assert [stage.job(id_).status for id_ in blocked] == ["running"] * 2
    signal_all([worker.runner()], signal.SIGCONT)
    stage.until_finished()
    assert other.runner() in {effect.pid for effect in stage.history.starts(type="quick")}
    stage.check()
    stage.close_down()
