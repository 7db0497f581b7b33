"""What goes wrong in a runner and is no job's doing: no job is charged for it, and each runs in the end."""

import resource
from pathlib import Path

from tests.e2e.stage import Stage
from tests.support.processes import until


def test_where_no_process_can_be_started_for_a_job_it_waits_and_is_charged_with_nothing(den: Stage) -> None:
    worker = den.worker("--concurrency", "1", app="rogues:app")
    den.until_status(den.enqueue_one("thread.quick", what=""), "completed")
    runner = worker.runner()
    before = resource.prlimit(runner, resource.RLIMIT_NOFILE)
    taken = max(int(each.name) for each in Path(f"/proc/{runner}/fd").iterdir())
    # One is left: a claim opens a lock file.
    resource.prlimit(runner, resource.RLIMIT_NOFILE, (taken + 2, before[1]))
    id_ = den.enqueue_one("process.quick", {"max_attempts": 1}, what="")
    until(lambda: den.job(id_).requeues or den.job(id_).status == "dead", "it is requeued")
    resource.prlimit(runner, resource.RLIMIT_NOFILE, before)
    job = den.until_status(id_, "completed", "dead")
    assert (job.status, job.failures, job.crashes) == ("completed", 0, 0)
    assert worker.output.count("starting a process for a handler failed") == 1
    assert worker.runners() == [runner]
    den.close_down()


def test_when_a_part_of_a_runner_fails_the_jobs_that_it_breaks_off_are_not_charged(den: Stage) -> None:
    worker = den.worker("--concurrency", "2", "--drain", "500ms", app="rogues:app")
    long = den.enqueue_one("async.wait", {"max_attempts": 1}, gate="gate")
    den.until_status(long, "running")
    first = worker.runner()
    den.enqueue_one("cancel_a_part")
    until(lambda: worker.runners() not in ([], [first]), "the runner is replaced")
    den.open("gate")
    job = den.until_status(long, "completed", "dead")
    assert (job.status, job.crashes, job.attempt) == ("completed", 0, 2)
    assert "CancelledError" in worker.output
    den.close_down()
