"""Processes for handlers: used again, replaced in time, and never left behind."""

import os
import signal

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import alive, children, command, until


def cells(runner: int) -> list[int]:
    return [pid for pid in children(runner) if b"windlass.worker.handlers.process_main" in command(pid)]


def results(den: Stage, ids: list[str]) -> list[int]:
    return [den.job(id_).result for id_ in ids]


def test_a_process_is_used_again_and_each_job_has_its_own_output(den: Stage) -> None:
    ids = [den.enqueue_one("say", text=f"number {number}") for number in range(10)]
    worker = den.worker("--concurrency", "1", app="rogues:app")
    den.until_finished()
    assert len(set(results(den, ids))) == 1
    assert cells(worker.runner()) == results(den, ids)[:1]
    for number, id_ in enumerate(ids):
        job = den.job(id_)
        assert [line.text for line in job.logs] == [f"logged number {number}", f"number {number}"]
        assert job.progress is not None
        assert (job.progress.done, job.progress.total, job.progress.note) == (1, 2, f"number {number}")
    den.check()
    den.close_down()


def test_a_process_is_replaced_after_its_number_of_jobs(den: Stage) -> None:
    ids = den.enqueue("process.quick", 12, what="")
    den.worker("--concurrency", "1", "--recycle-jobs", "5", app="rogues:app")
    den.until_finished()
    pids = [effect.pid for effect in den.history.starts()]
    assert sorted(pids.count(pid) for pid in set(pids)) == [2, 5, 5]
    den.check()
    assert len(ids) == 12
    den.close_down()


def test_a_process_that_has_grown_is_replaced_but_not_if_it_was_that_large_at_first(den: Stage) -> None:
    den.enqueue("grow", 3, megabytes=300)
    den.worker("--concurrency", "1", "--recycle-memory", "256MB", "--until-empty", app="rogues:app").wait()
    grown = den.history.starts(type="grow")
    assert len({effect.pid for effect in grown}) == 3

    small = den.enqueue("process.quick", 4, what="")
    den.worker("--concurrency", "1", "--recycle-memory", "1MB", "--until-empty", app="rogues:app").wait()
    assert len(set(results(den, small))) == 1, "the limit is below what the app needs: it cannot hold"
    den.check()
    den.close_down()


@on_every_store
def test_the_processes_of_a_killed_runner_die_with_it_and_their_jobs_run_again_alone(den: Stage) -> None:
    ids = den.enqueue("process.wait", 3, {"max_attempts": 1}, gate="gate")
    worker = den.worker("--concurrency", "4", app="rogues:app")
    den.until_started(ids)
    runner = worker.runner()
    left = cells(runner)
    assert len(left) == 3
    os.kill(runner, signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in left), "the processes die")
    until(lambda: all(len(den.history.starts(id_)) == 2 for id_ in ids), "their jobs run again")
    den.open("gate")
    den.until_finished()
    for job in map(den.job, ids):
        assert (job.attempts[0].outcome, job.suspicions, job.crashes) == ("crashed among several", 1, 0)
    den.check(again=ids)
    den.close_down()


def test_a_drain_waits_for_processes_and_then_hands_their_jobs_back(den: Stage) -> None:
    soon = den.enqueue_one("process.wait", gate="soon")
    late = den.enqueue_one("process.wait", {"max_attempts": 1}, gate="late")
    worker = den.worker("--drain", "2s", app="rogues:app")
    den.until_started([soon, late])
    left = cells(worker.runner())
    worker.send(signal.SIGTERM)
    until(lambda: "stopping: " in worker.output, "it drains")
    den.open("soon")
    assert worker.wait() == 0
    until(lambda: not any(alive(pid) for pid in left), "no process outlives its worker")
    assert den.job(soon).status == "completed"
    job = den.job(late)
    assert (job.status, job.requeues, job.crashes, job.failures) == ("pending", 1, 0, 0)
    den.open("late")
    den.worker(app="rogues:app")
    den.until_finished()
    den.check(again=[late])
    den.close_down()


def test_an_idle_process_that_is_killed_is_no_jobs_crash(den: Stage) -> None:
    first = den.enqueue_one("process.quick", what="")
    worker = den.worker("--concurrency", "1", app="rogues:app")
    den.until_finished()
    (cell,) = cells(worker.runner())
    os.kill(cell, signal.SIGKILL)
    until(lambda: not cells(worker.runner()), "it is gone")
    second = den.enqueue_one("process.quick", what="")
    den.until_finished()
    job = den.job(second)
    assert (job.attempt, job.crashes) == (1, 0)
    assert job.result != den.job(first).result == cell
    den.check()
    den.close_down()


def test_a_process_that_cannot_load_the_app_is_a_failure_that_says_why(den: Stage) -> None:
    worker = den.worker("--concurrency", "1", app="rogues:app")
    den.enqueue_one("thread.quick", what="")
    den.until_finished()
    (den.folder / "rogues.py").write_text("raise RuntimeError('half deployed')")
    id_ = den.enqueue_one("process.quick", {"max_attempts": 1}, what="")
    job = den.until_status(id_, "dead")
    assert job.error is not None
    assert (job.error.type, job.failures, job.crashes) == ("HandlerProcessFailed", 1, 0)
    assert "half deployed" in job.error.message
    until(lambda: not cells(worker.runner()), "nothing is left of it")
    den.close_down()
