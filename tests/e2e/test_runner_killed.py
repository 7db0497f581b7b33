"""A runner is killed: its supervisor sees it at once and knows what it was doing."""

import os
import signal

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import alive, until


def started_and_running(stage: Stage) -> set[str]:
    """Jobs that began and are not settled: what a kill may make run twice."""
    running = {job.id for job in stage.all_jobs("running")}
    return running & stage.history.runs().keys()


@on_every_store
def test_what_ran_runs_again_and_what_was_prefetched_is_requeued_uncounted(stage: Stage) -> None:
    # Fast jobs first, so that the runner prefetches; then three that fill its slots; then some to wait behind them.
    stage.enqueue("quick", 300)
    blocked = stage.enqueue("block", 3, gate="gate")
    stage.enqueue("quick", 100)
    worker = stage.worker("--concurrency", "3")
    runner = worker.runner()
    stage.until_started(blocked)
    until(lambda: started_and_running(stage) == set(blocked), "nothing but the three is in flight")
    prefetched = [job.id for job in stage.all_jobs("running", "quick")]
    os.kill(runner, signal.SIGKILL)

    until(lambda: [pid for pid in worker.runners() if pid != runner], "the supervisor starts another runner")
    until(lambda: all(len(stage.history.starts(id_)) == 2 for id_ in blocked), "what ran runs again")
    stage.open("gate")
    stage.until_finished()

    for id_ in blocked:
        job = stage.job(id_)
        assert (job.attempt, job.suspicions, job.failures, job.crashes) == (2, 1, 0, 0)
        assert job.attempts[0].outcome == "crashed among several"
    assert prefetched, "nothing was prefetched: this test does not test what it says"
    for id_ in prefetched:
        job = stage.job(id_)
        assert (job.failures, job.crashes, job.suspicions, job.rescues) == (0, 0, 0, 0)
        assert job.attempt == job.requeues + 1 == 2
    stage.check(again=blocked)
    stage.close_down()
    assert "killed by SIGKILL" in worker.output


@on_every_store
def test_a_job_that_was_alone_is_charged_with_the_crash(stage: Stage) -> None:
    id_ = stage.enqueue_one("ablock", gate="gate")
    worker = stage.worker()
    stage.until_started([id_])
    os.kill(worker.runner(), signal.SIGKILL)
    until(lambda: len(stage.history.starts(id_)) == 2, "it runs again")
    stage.open("gate")
    stage.until_finished()
    job = stage.job(id_)
    assert (job.attempt, job.crashes, job.rescues, job.failures, job.requeues) == (2, 1, 0, 0, 0)
    stage.check(again=[id_])
    stage.close_down()


@on_every_store
def test_another_worker_does_not_rescue_before_the_supervisor_has_named_the_suspect(stage: Stage) -> None:
    first = stage.worker("--concurrency", "1")
    ids = stage.enqueue("block", 3, gate="gate")
    stage.until_started(ids[:1])
    # The bystander is the coordinator: it must leave the case to the supervisor, who has the facts.
    stage.worker("--concurrency", "1")
    stage.until_started(ids[:2])
    for crashes in (1, 2):
        os.kill(until(first.runners, "a runner")[0], signal.SIGKILL)
        until(lambda crashes=crashes: len(stage.history.starts()) == 2 + crashes, "a job runs again")  # type: ignore[misc]
    stage.open("gate")
    stage.until_finished()
    jobs = [stage.job(id_) for id_ in ids]
    assert sum(job.crashes for job in jobs) == 2
    assert sum(job.rescues + job.suspicions for job in jobs) == 0
    stage.check(again=ids)
    stage.close_down()


def test_a_process_that_a_handler_left_behind_does_not_hide_the_runners_death(stage: Stage) -> None:
    id_ = stage.enqueue_one("leave_child")
    worker = stage.worker()
    stage.until_started([id_])
    runner = worker.runner()
    os.kill(runner, signal.SIGKILL)
    until(lambda: not alive(runner), "the runner is dead")
    until(lambda: [pid for pid in worker.runners() if pid != runner], "the supervisor starts another runner")
    until(lambda: len(stage.history.starts(id_)) == 2, "the job runs again")
    stage.open("gate")
    stage.until_finished()
    stage.check(again=[id_])
    stage.close_down()
