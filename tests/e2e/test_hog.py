"""A handler that holds the interpreter for several leases loses nothing, and delays no other for long."""

from tests.e2e.stage import Stage
from tests.support.processes import until


def test_a_hog_runs_once_and_what_waits_behind_it_runs_elsewhere(stage: Stage) -> None:
    stage.enqueue("quick", 300)
    hog = stage.enqueue_one("hog", seconds=4.0, gate="gate")
    stage.enqueue("quick", 100)
    first = stage.worker("--concurrency", "1", lease="1s")
    stage.until_started([hog])
    other = stage.worker("--concurrency", "1", lease="1s")
    until(lambda: len(stage.history.ends(type="quick")) == 400, "nothing waits for the hog")
    assert stage.job(hog).status == "running"
    stage.open("gate")
    stage.until_finished()

    history = stage.history
    behind = [e for e in history.starts(type="quick") if e.at > history.starts(hog)[0].at]
    assert {effect.pid for effect in behind} == {other.runner()}
    job = stage.job(hog)
    assert (job.attempt, history.ends(hog)[0].pid) == (1, first.runner())
    assert sum(job.requeues for job in stage.all_jobs()) > 0, "nothing was prefetched behind the hog"
    stage.check()
    stage.close_down()
