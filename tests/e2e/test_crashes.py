"""Handlers that take their process with them: the culprit is found, and no other job is charged."""

import os
import signal

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import until

DEATHS = {
    "exit 0": "exit code 0",
    "exit 3": "exit code 3",
    "SIGKILL": "killed by SIGKILL",
    "segfault": "killed by SIGSEGV",
}


def test_a_process_that_dies_is_its_jobs_crash_and_three_make_it_dead(den: Stage) -> None:
    dying = {what: den.enqueue_one("process.die", {"max_attempts": 10}, what=what) for what in DEATHS}
    good = den.enqueue("process.quick", 4, what="")
    others = den.enqueue("thread.quick", 4, what="")
    worker = den.worker("--concurrency", "3", app="rogues:app")
    runner = worker.runner()
    den.until_finished()

    for what, how in DEATHS.items():
        job = den.job(dying[what])
        assert (job.status, job.attempt, job.crashes, job.failures, job.suspicions) == ("dead", 3, 3, 0, 0)
        assert (job.reason, [each.outcome for each in job.attempts]) == (
            "crashed its runner 3 times",
            ["crashed"] * 3,
        )
        assert job.error is not None
        assert job.error.type == "Crashed"
        assert how in job.error.message
        assert "about to die" in [line.text for line in job.logs]
        starts = den.history.starts(job.id)
        assert len({effect.pid for effect in starts}) == 3, "a suspect's process was used again"
    segfault = den.job(dying["segfault"]).error
    assert segfault is not None
    assert "rogues.py" in segfault.message, "the message says where"
    assert {den.job(id_).attempt for id_ in [*good, *others]} == {1}
    assert worker.runners() == [runner], "the runner was replaced"
    den.check(unfinished=dying.values())
    den.close_down()


@on_every_store
@pytest.mark.parametrize(
    ("kind", "what"), [("async", "SIGKILL"), pytest.param("thread", "exit 0", marks=pytest.mark.extended)]
)
def test_one_killer_among_fifty_innocents_and_the_fifty_complete(den: Stage, kind: str, what: str) -> None:
    before = [
        *den.enqueue("async.wait", 12, {"max_attempts": 1}, gate="gate"),
        *den.enqueue("thread.wait", 12, {"max_attempts": 1}, gate="gate"),
    ]
    killer = den.enqueue_one(f"{kind}.die", {"max_attempts": 10}, what=what)
    after = den.enqueue(f"{kind}.quick", 26, {"max_attempts": 1}, what="")
    worker = den.worker("--concurrency", "25", app="rogues:app")
    den.until_status(killer, "dead")
    den.open("gate")
    den.until_finished()

    job = den.job(killer)
    outcomes = [attempt.outcome for attempt in job.attempts if attempt.outcome != "requeued"]
    assert outcomes == ["crashed among several", *["crashed"] * 3]
    assert (job.crashes, job.suspicions, job.failures, job.reason) == (3, 1, 0, "crashed its runner 3 times")
    innocents = [den.job(id_) for id_ in [*before, *after]]
    assert {each.status for each in innocents} == {"completed"}
    assert {(each.failures, each.crashes, each.rescues) for each in innocents} == {(0, 0, 0)}
    assert max(each.suspicions for each in innocents) == 1, "the killer killed more than one runner"
    assert len(worker.output.split("runner ")) > 2
    den.check(again=[*before, *after], unfinished=[killer])
    den.close_down()


@on_every_store
def test_the_loss_of_a_whole_worker_is_counted_as_a_crash_of_no_job(den: Stage) -> None:
    kinds = ("async", "thread", "process")
    ids = [id_ for kind in kinds for id_ in den.enqueue(f"{kind}.wait", 2, {"max_attempts": 1}, gate="gate")]
    worker = den.worker(app="rogues:app", lease="1s")
    den.until_started(ids)
    runner = worker.runner()
    os.kill(worker.pid, signal.SIGSTOP)  # so that it cannot see its runner die
    os.kill(runner, signal.SIGKILL)
    worker.kill()
    den.worker(app="rogues:app", lease="1s")
    until(lambda: all(len(den.history.starts(id_)) == 2 for id_ in ids), "they run again")
    den.open("gate")
    den.until_finished()
    jobs = [den.job(id_) for id_ in ids]
    assert {(job.rescues, job.crashes, job.suspicions, job.failures) for job in jobs} == {(1, 0, 0, 0)}
    den.check(again=ids)
    den.close_down()


@on_every_store
def test_a_crash_uses_up_the_budget_like_a_failure(den: Stage) -> None:
    id_ = den.enqueue_one("process.die", {"max_attempts": 2}, what="exit 3")
    den.worker(app="rogues:app")
    job = den.until_status(id_, "dead")
    assert (job.crashes, job.reason) == (2, "crashed; 2 of 2 attempts used")
    den.close_down()


def test_a_runner_whose_descriptors_are_closed_is_replaced(den: Stage) -> None:
    closing = den.enqueue_one("close_all_here", {"max_attempts": 10})
    den.worker("--concurrency", "3", app="rogues:app")
    good = den.enqueue("thread.quick", 20, what="")
    job = den.until_status(closing, "dead")
    assert (job.crashes, job.reason) == (3, "crashed its runner 3 times")
    den.until_finished()
    den.check(again=good, unfinished=[closing])
    den.close_down()


def test_a_runner_that_hung_up_and_lives_on_is_ended(den: Stage) -> None:
    closing = den.enqueue_one("hang_up", {"max_attempts": 2, "timeout": 60})
    worker = den.worker("--concurrency", "3", app="rogues:app")
    runner = worker.runner()
    den.until_started([closing])
    until(lambda: worker.runners() not in ([], [runner]), "the runner is replaced")
    good = den.enqueue("thread.quick", 20, what="")
    until(lambda: all(den.job(id_).status == "completed" for id_ in good), "the others go on")
    assert den.job(closing).attempts[0].outcome == "crashed"
    den.app.jobs.cancel(closing)
    den.until_status(closing, "dead", "cancelled")  # in a process of its own it may hang up too
    den.check(again=good, unfinished=[closing])
    den.close_down()
