"""What handlers decide, seen from outside: retries, snoozes, dead letters, cancels, results."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import until
from windlass import App, Handle, JobDead


@on_every_store
def test_a_failing_job_is_tried_again_after_its_wait_and_never_before(stage: Stage) -> None:
    id_ = stage.enqueue_one("flaky", {"max_attempts": 5}, failures=2)
    stage.worker()
    job = stage.until_status(id_, "completed")
    assert (job.attempt, job.failures, job.result) == (3, 2, "at last")
    assert [attempt.outcome for attempt in job.attempts] == ["failed", "failed", "completed"]
    starts = [effect.at for effect in stage.history.starts(id_)]
    assert all(after - before >= 400_000_000 for before, after in pairwise(starts))
    stage.check(again=[id_])
    stage.close_down()


@on_every_store
def test_a_handler_decides_its_own_outcome(stage: Stage) -> None:
    ids = {what: stage.enqueue_one("decide", what=what) for what in ("retry", "snooze", "cancel", "dead", "plain")}
    stage.worker()
    stage.until_finished()
    jobs = {what: stage.job(id_) for what, id_ in ids.items()}
    assert {what: (job.status, job.attempt, job.failures, job.snoozes) for what, job in jobs.items()} == {
        "retry": ("completed", 2, 1, 0),
        "snooze": ("completed", 2, 0, 1),
        "cancel": ("cancelled", 1, 0, 0),
        "dead": ("dead", 1, 1, 0),
        "plain": ("completed", 1, 0, 0),
    }
    assert (jobs["cancel"].reason, jobs["dead"].reason) == ("not needed", "hopeless")
    for what in ("retry", "snooze"):
        first, second = stage.history.starts(ids[what])
        assert second.at - first.at >= 500_000_000
    stage.check(again=[ids["retry"], ids["snooze"]], unfinished=[ids["cancel"], ids["dead"]])
    stage.close_down()


@on_every_store
def test_dead_jobs_are_revived_by_a_command(stage: Stage) -> None:
    ids = stage.enqueue("doomed", 3, {"max_attempts": 2}, gate="gate")
    stage.worker()
    for id_ in ids:
        job = stage.until_status(id_, "dead")
        assert (job.attempt, job.failures) == (2, 2)
        assert job.error is not None
        assert job.error.message == "no way"
    stage.open("gate")
    assert "3 revived" in stage.command("dead", "retry", "--all")
    for id_ in ids:
        assert stage.until_status(id_, "completed").attempt == 3
    stage.check(again=ids)
    stage.close_down()


@on_every_store
def test_a_running_job_is_asked_to_stop_and_shows_how_far_it_is(stage: Stage) -> None:
    id_ = stage.enqueue_one("polite")
    stage.worker()
    stage.until_started([id_])
    until(lambda: stage.job(id_).progress is not None and stage.job(id_).logs, "progress and log lines can be seen")
    job = stage.job(id_)
    assert job.progress is not None
    assert (job.status, job.progress.done, job.progress.total, job.progress.note) == ("running", 1, 4, "a quarter")
    assert [line.text for line in job.logs] == ["it begins"]
    assert stage.app.jobs.cancel(id_).cancel_requested
    assert stage.until_status(id_, "cancelled").reason == "asked to stop"
    assert len(stage.history.ends(id_)) == 1
    stage.check(unfinished=[id_])
    stage.close_down()


@on_every_store
def test_a_result_is_awaited_from_another_process(stage: Stage) -> None:
    ids = [stage.enqueue_one("add", a=2, b=3), stage.enqueue_one("decide", what="dead")]
    stage.start_worker()
    handles = [Handle[int](stage.app, id_, False, int) for id_ in ids]
    assert handles[0].result(timeout=30) == 5
    with pytest.raises(JobDead, match="hopeless"):
        handles[1].result(timeout=30)

    async def from_a_loop() -> int:
        app = App(stage.url)
        try:
            return await Handle[int](app, ids[0], False, int).aresult(timeout=30)
        finally:
            await app.aclose()

    assert asyncio.run(from_a_loop()) == 5
    stage.close_down()


@on_every_store
def test_a_delayed_job_runs_when_its_time_has_come_and_not_before(stage: Stage) -> None:
    stage.worker()
    id_ = stage.enqueue_one("quick", {"delay": 1.5})
    assert stage.job(id_).status == "scheduled"
    stage.until_status(id_, "completed")
    job = stage.job(id_)
    assert job.started_at is not None
    assert timedelta(seconds=1.5) <= job.started_at - job.created_at < timedelta(seconds=15)
    assert job.started_at >= job.run_at
    stage.check()
    stage.close_down()


@on_every_store
def test_handlers_enqueue_jobs_themselves(stage: Stage) -> None:
    ids = [*stage.enqueue("hand_on", 3), *stage.enqueue("ahand_on", 3)]
    stage.worker()
    stage.until_finished()
    children = [stage.job(id_).result for id_ in ids]
    assert len(set(children)) == 6
    assert [stage.job(child).status for child in children] == ["completed"] * 6
    stage.check()
    stage.close_down()
