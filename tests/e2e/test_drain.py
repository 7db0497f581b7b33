"""SIGTERM: running jobs get the drain time, the rest is requeued, the worker signs off and exits 0."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import SHOP, Stage, answer, free_port
from tests.support.addresses import on_every_store
from tests.support.parts import extended
from tests.support.processes import Processes, alive, let_pass, until
from windlass.worker.stop_signals import SAME_REQUEST_SECONDS


@on_every_store
def test_what_outlives_the_drain_is_requeued_and_never_overlaps_its_next_attempt(stage: Stage) -> None:
    port = free_port()
    # All slots are in use when the signal comes: the job after it cannot start before the runner has got the stop.
    worker = stage.worker("--drain", "2s", "--concurrency", "6", "--health", f"127.0.0.1:{port}")
    assert (answer(port, "/healthz"), answer(port, "/readyz")) == (200, 200)
    ending = [*stage.enqueue("block", 1, gate="soon"), *stage.enqueue("ablock", 1, gate="soon")]
    staying = [*stage.enqueue("block", 2, gate="late"), *stage.enqueue("ablock", 2, gate="late")]
    stage.until_started([*ending, *staying])
    runner = worker.runner()
    worker.send(signal.SIGTERM)
    until(lambda: answer(port, "/readyz") == 503, "readiness fails at once")
    assert answer(port, "/healthz") == 200
    after = stage.enqueue_one("quick")
    other = stage.start_worker()
    stage.open("soon")
    assert worker.wait() == 0
    assert [info.pid for info in stage.app.workers.list()] in ([], [other.pid])
    stage.open("late")
    stage.until_finished()

    for id_ in ending:
        assert (stage.job(id_).attempt, stage.history.ends(id_)[0].pid) == (1, runner)
    for id_ in staying:
        job = stage.job(id_)
        assert (job.attempt, job.requeues, job.failures, job.crashes, job.rescues) == (2, 1, 0, 0, 0)
    assert stage.history.starts(after)[0].pid == other.runner()
    stage.check(again=staying)
    stage.close_down()


@on_every_store
def test_a_second_signal_ends_the_drain_at_once(stage: Stage) -> None:
    port = free_port()
    worker = stage.worker("--drain", "10m", "--health", f"127.0.0.1:{port}")
    ids = [*stage.enqueue("block", 1, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(ids)
    worker.send(signal.SIGTERM)
    until(lambda: answer(port, "/readyz") == 503, "the drain begins")
    let_pass(2 * SAME_REQUEST_SECONDS)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert [(job.status, job.requeues) for job in map(stage.job, ids)] == [("pending", 1)] * 2
    stage.open("gate")
    stage.worker()
    stage.until_finished()
    stage.check(again=ids)
    stage.close_down()


def test_a_job_that_speaks_in_its_last_moment_is_not_run_again(stage: Stage) -> None:
    worker = stage.worker("--drain", "20s")
    ids = stage.enqueue("last_word", 10, gate="gate")
    stage.until_started(ids)
    worker.send(signal.SIGTERM)
    until(lambda: "stopping" in worker.output, "the drain begins")
    stage.open("gate")
    assert worker.wait() == 0
    assert [stage.job(id_).status for id_ in ids] == ["completed"] * 10
    assert [len(stage.job(id_).logs) for id_ in ids] == [1] * 10
    stage.check()
    stage.close_down()


@on_every_store
def test_a_drain_under_load_keeps_nothing_but_what_runs(stage: Stage) -> None:
    port = free_port()
    worker = stage.worker("--drain", "10m", "--concurrency", "4", "--health", f"127.0.0.1:{port}")
    blocked = stage.enqueue_one("block", gate="gate")
    stage.until_started([blocked])
    stage.enqueue("quick", 2000)
    until(lambda: len(stage.history.starts(type="quick")) > 100, "the load flows")
    worker.send(signal.SIGTERM)
    until(lambda: answer(port, "/readyz") == 503, "the drain begins")
    # No other worker is here: what was claimed or prefetched must come back by itself, while the one job runs on.
    until(lambda: [job.id for job in stage.all_jobs("running")] == [blocked], "all else is requeued")
    stage.open("gate")
    assert worker.wait() == 0
    assert all(job.rescues == job.crashes == job.failures == 0 for job in stage.all_jobs())
    stage.worker("--until-empty", "--concurrency", "100")
    stage.until_finished()
    stage.check()


@pytest.fixture
def stranded(tmp_path: Path, store: str) -> Iterator[Processes]:
    """Processes whose server is not there."""
    shutil.copy(SHOP, tmp_path / "shop.py")
    started = Processes(tmp_path, {"WINDLASS_STORE": store.format(port=free_port())})
    yield started
    started.end()


@pytest.mark.parametrize("store", ["postgresql://127.0.0.1:{port}/jobs", *extended(["redis://127.0.0.1:{port}/0"])])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_a_worker_that_waits_for_its_store_ends_without_a_drain(
    stranded: Processes, number: signal.Signals, code: int
) -> None:
    """It holds nothing. A runner whose supervisor is gone does not wait either."""
    worker = stranded.start("worker", "-m", "windlass", "worker", "shop:app", "--drain", "10m")
    until(lambda: "opening the store failed, trying again" in worker.output, "it waits")
    runner = worker.runner()
    worker.send(number)
    assert worker.wait() == code
    until(lambda: not alive(runner), "its runner ends too")


def test_a_worker_that_is_stopped_while_its_runner_starts_ends_without_a_drain(stage: Stage) -> None:
    """It holds nothing yet. What it waits for, such as a database of the app's own, may not come for hours."""
    (stage.folder / "slow.py").write_text(SLOW)
    worker = stage.processes.start("worker", "-m", "windlass", "worker", "slow:app", "--drain", "10m")
    until(lambda: (stage.folder / "waits").exists(), "it waits")
    runner = worker.runner()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert not alive(runner)


SLOW = """
import pathlib, time
from windlass import App

app = App()


@app.on_start
def wait(state):
    pathlib.Path("waits").touch()
    time.sleep(3600)
"""
