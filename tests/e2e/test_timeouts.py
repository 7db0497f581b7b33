"""Time that is over, and jobs that are cancelled: each kind of handler ends, and no attempt overlaps the next."""

import signal

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import descendants, freeze, let_pass, signal_all, until
from windlass import Job

KINDS = ("async", "thread", "process")


def is_overdue(job: Job, timeout: str) -> bool:
    text = f"it took longer than its timeout of {timeout}; timeout=None allows any length"
    return job.error is not None and (job.error.type, job.error.message) == ("TimeoutError", text)


@pytest.mark.parametrize("kind", ["async", "process"])
def test_a_handler_that_can_be_stopped_is_stopped_and_tried_again(den: Stage, kind: str) -> None:
    id_ = den.enqueue_one(f"{kind}.wait", {"timeout": 1, "max_attempts": 2}, gate="never")
    worker = den.worker(app="rogues:app")
    runner = worker.runner()
    others = den.enqueue(f"{kind}.quick", 5, what="")
    job = den.until_status(id_, "dead")
    assert is_overdue(job, "1s")
    assert (job.failures, job.crashes, job.requeues) == (2, 0, 0)
    assert [attempt.outcome for attempt in job.attempts] == ["failed", "dead"]
    for start in den.history.starts(id_):
        assert den.history.last_sign(id_, start.attempt) - start.at > 0.9e9, "it was stopped before its time"
    assert worker.runners() == [runner]
    assert {den.job(each).status for each in others} == {"completed"}
    den.check(unfinished=[id_])
    den.close_down()


def test_a_deaf_thread_keeps_its_job_and_slot_until_its_runner_has_ended(den: Stage) -> None:
    deaf = den.enqueue_one("thread.wait", {"timeout": 1, "max_attempts": 2}, gate="never")
    other = den.enqueue_one("async.wait", gate="gate")
    worker = den.worker("--drain", "2s", "--concurrency", "3", app="rogues:app")
    runner = worker.runner()
    den.until_started([deaf, other])
    started = den.history.starts(deaf)[0].at
    until(lambda: den.history.last_sign(deaf, 1) - started > 1.5e9, "its time is over")
    assert den.job(deaf).status == "running"
    late = den.enqueue_one("async.quick", what="")
    den.open("gate")  # the other one ends within the drain time
    den.until_status(other, "completed")
    den.until_status(late, "completed")
    assert den.history.starts(late)[0].pid != runner, "a runner with a deaf handler took new work"
    job = den.until_status(deaf, "dead")
    assert is_overdue(job, "1s")
    assert (job.failures, job.crashes, job.rescues, job.suspicions) == (2, 0, 0, 0)
    assert {each.pid for each in den.history.starts(deaf)}.isdisjoint(worker.runners())
    assert (den.job(other).attempt, den.job(late).attempt) == (1, 1)
    den.check(unfinished=[deaf])  # no attempt overlaps the one before it
    den.close_down()


def test_a_coroutine_that_swallows_and_a_thread_that_ignores_end_with_their_runners(den: Stage) -> None:
    """In two workers, because both take long."""
    stubborn = den.enqueue_one("stubborn", {"timeout": 1, "max_attempts": 1}, gate="never")
    ignoring = den.enqueue_one("thread.wait", {"timeout": None, "queue": "hurried"}, gate="never")
    workers = [den.worker("--drain", "1s", "--queues", queue, app="rogues:app") for queue in ("default", "hurried")]
    before = [worker.runner() for worker in workers]
    den.until_started([stubborn, ignoring])
    den.app.jobs.cancel(ignoring)
    assert den.job(ignoring).cancel_requested
    until(lambda: "no" in [line.text for line in den.job(stubborn).logs], "the coroutine was asked to end")
    assert den.job(stubborn).status == "running"
    timed_out = den.until_status(stubborn, "dead")
    assert is_overdue(timed_out, "1s")
    cancelled = den.until_status(ignoring, "cancelled")
    for job in (timed_out, cancelled):
        assert (job.attempt, job.crashes, job.rescues, job.suspicions, job.requeues) == (1, 0, 0, 0, 0)
    assert (timed_out.failures, cancelled.failures) == (1, 0)
    for worker, runner in zip(workers, before, strict=True):
        assert runner not in worker.runners()
    good = [den.enqueue_one("thread.quick", {"queue": queue}, what="") for queue in ("default", "hurried")]
    den.until_finished()
    assert {den.job(id_).status for id_ in good} == {"completed"}
    den.check(unfinished=[stubborn, ignoring])
    den.close_down()


def test_a_handler_that_holds_the_loop_is_named_ended_at_its_time_and_the_rest_requeued(den: Stage) -> None:
    others = den.enqueue("async.wait", 3, {"max_attempts": 1}, gate="gate")
    worker = den.worker("--concurrency", "5", app="rogues:app")
    den.until_started(others)
    holding = den.enqueue_one("hold_loop", {"timeout": 5, "max_attempts": 1}, gate="never")
    den.until_started([holding])
    until(lambda: "blocked for" in worker.output, "a warning is given while it lasts")
    assert holding in worker.output.partition("blocked for")[2].splitlines()[0]
    assert "rogues.py:" in worker.output.partition("blocked for")[2].splitlines()[0]
    assert "in hold_loop" in worker.output
    assert den.job(holding).status == "running"
    job = den.until_status(holding, "dead")
    assert is_overdue(job, "5s")
    assert (job.failures, job.crashes) == (1, 0)
    assert "held it beyond the timeout" in worker.output
    den.open("gate")
    den.until_finished()
    for id_ in others:
        found = den.job(id_)
        assert (found.status, found.requeues, found.failures, found.crashes, found.suspicions) == (
            "completed", 1, 0, 0, 0,
        )  # fmt: skip
    den.check(again=others, unfinished=[holding])
    den.close_down()


def test_without_a_timeout_a_handler_takes_as_long_as_it_likes(den: Stage) -> None:
    ids = [den.enqueue_one(f"{kind}.wait", {"timeout": None, "queue": "hurried"}, gate="gate") for kind in KINDS]
    den.worker(app="rogues:app")
    den.until_started(ids)
    let_pass(2.0)  # longer than the queue's timeout
    assert {den.job(id_).status for id_ in ids} == {"running"}
    den.open("gate")
    den.until_finished()
    assert {(job.attempt, job.timeout) for job in map(den.job, ids)} == {(1, None)}
    den.check()
    den.close_down()


def test_time_counts_from_the_handlers_start_not_from_its_claim(den: Stage) -> None:
    """Fast jobs first, so that the runner prefetches; then one that makes those behind it wait."""
    den.enqueue("async.quick", 300, what="")
    first = den.enqueue_one("async.wait", gate="gate")
    behind = den.enqueue("async.quick", 20, {"timeout": 0.5, "max_attempts": 1}, what="")
    den.worker("--concurrency", "1", app="rogues:app")
    den.until_started([first])
    let_pass(1.0)
    den.open("gate")
    den.until_finished()
    assert {job.status for job in map(den.job, behind)} == {"completed"}
    den.check()
    den.close_down()


def test_the_jobs_timeout_wins_over_the_tasks_and_the_tasks_over_the_queues(den: Stage) -> None:
    (den.folder / "producer.py").write_text(
        "from rogues import app, hurry, wait_on_loop, wait_in_process\n"
        "options = {'max_attempts': 1}\n"
        "print(wait_on_loop.using(queue='hurried', **options).enqueue(gate='never').id)\n"
        "print(hurry.using(queue='hurried', **options).enqueue(gate='gate').id)\n"
        "print(hurry.using(timeout=3600, **options).enqueue(gate='gate').id)\n"
        "print(wait_in_process.using(**options).enqueue(gate='gate').id)\n"
    )
    producer = den.processes.start("producer", "producer.py")
    assert producer.wait() == 0, producer.output
    by_queue, by_task, by_job, by_default = producer.output.split()[-4:]
    assert [den.job(id_).timeout for id_ in (by_queue, by_task, by_job, by_default)] == [1, 2, 3600, 300]
    den.open("gate")
    den.worker(app="rogues:app")
    assert is_overdue(den.until_status(by_queue, "dead"), "1s")
    den.until_finished()
    assert {den.job(id_).status for id_ in (by_task, by_job, by_default)} == {"completed"}
    den.close_down()


@on_every_store
def test_a_waiting_job_that_is_cancelled_never_runs(den: Stage) -> None:
    ids = [den.enqueue_one(f"{kind}.wait", gate="never") for kind in KINDS]
    for id_ in ids:
        den.app.jobs.cancel(id_)
    den.worker(app="rogues:app")
    den.enqueue_one("async.quick", what="")
    den.until_finished()
    assert {(den.job(id_).status, den.job(id_).attempt) for id_ in ids} == {("cancelled", 0)}
    assert not set(ids) & den.history.runs().keys()
    den.close_down()


@on_every_store
def test_a_running_job_that_is_cancelled_ends_and_says_so(den: Stage) -> None:
    ids = {kind: den.enqueue_one(f"{kind}.wait", gate="never") for kind in ("async", "process")}
    polite = den.enqueue_one("polite")
    worker = den.worker(app="rogues:app")
    runner = worker.runner()
    den.until_started([*ids.values(), polite])
    until(lambda: den.job(polite).progress and den.job(polite).logs, "its progress is seen while it runs")
    for id_ in (*ids.values(), polite):
        den.app.jobs.cancel(id_)
        found = den.job(id_)
        assert found.cancel_requested or found.status == "cancelled"
    den.until_finished()
    for id_ in ids.values():
        job = den.job(id_)
        assert job.status == "cancelled"
        assert "cancelled" in (job.reason or "")
        assert (job.attempt, job.failures, job.crashes) == (1, 0, 0)
    said = den.job(polite)
    assert (said.status, said.progress.note if said.progress else "") == ("cancelled", "a quarter")
    assert den.history.ends(polite), "it could not see that it was asked to stop"
    assert worker.runners() == [runner]
    den.close_down()


def test_a_timeout_does_not_pass_while_the_whole_worker_is_stopped(den: Stage) -> None:
    """A laptop that sleeps, a container that is paused: afterwards every handler has the time that it had left."""
    worker = den.worker("--concurrency", "5", app="rogues:app")
    runner = worker.runner()
    for type_ in (
        "process.wait",
        "thread.wait",
        "async.wait",
        "hold_loop",
    ):  # slow to start first, the last holds all
        den.until_started([den.enqueue_one(type_, {"timeout": 5, "max_attempts": 1}, gate="gate")])
    everything = [worker.pid, *descendants(worker.pid)]
    freeze(everything, den.inside.is_held_up)
    let_pass(7.5)
    den.open("gate")
    signal_all(everything, signal.SIGCONT)
    den.until_finished()
    assert worker.runners() == [runner]
    den.check()
    den.close_down()
