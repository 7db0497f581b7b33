"""A handler that holds the interpreter for several leases loses nothing, and delays no other for long."""

from tests.e2e.stage import Stage
from tests.support.processes import until


def test_a_handler_that_holds_the_gil_runs_once_and_what_waits_behind_it_runs_elsewhere(stage: Stage) -> None:
    stage.enqueue("quick", 300)
    gil_holder = stage.enqueue_one("gil_holder", seconds=4.0, gate="gate")
    stage.enqueue("quick", 100)
    first = stage.worker("--concurrency", "1", lease="1s")
    stage.until_started([gil_holder])
    other = stage.worker("--concurrency", "1", lease="1s")
    until(lambda: len(stage.history.ends(type="quick")) == 400, "nothing waits for the handler that holds the GIL")
    assert stage.job(gil_holder).status == "running"
    stage.open("gate")
    stage.until_finished()

    history = stage.history
    behind = [e for e in history.starts(type="quick") if e.at > history.starts(gil_holder)[0].at]
    assert {effect.pid for effect in behind} == {other.runner()}
    job = stage.job(gil_holder)
    assert (job.attempt, history.ends(gil_holder)[0].pid) == (1, first.runner())
    assert sum(job.requeues for job in stage.all_jobs()) > 0, "nothing was prefetched behind it"
    stage.check()
    stage.close_down()
