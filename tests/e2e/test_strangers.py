"""Jobs of types that a worker does not know: parked when no worker knows them, and in no job's way otherwise."""

from pathlib import Path

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import cpu_seconds, let_pass, until

PRESS = """
from windlass import App
app = App()

@app.task
def press(sheet: int) -> int:
    return sheet
"""


def write_press(folder: Path) -> None:
    """Another app on the same store, which knows one type only."""
    (folder / "press.py").write_text(PRESS)


@on_every_store
def test_an_unknown_type_is_parked_and_freed_when_a_worker_that_knows_it_starts(stage: Stage) -> None:
    write_press(stage.folder)
    ids = stage.enqueue("press", 3, sheet=1)
    known = stage.enqueue_one("quick")
    stage.worker()
    stage.until_status(known, "completed")
    for id_ in ids:
        assert "no worker" in (stage.until_status(id_, "blocked").reason or "")
    stage.worker(app="press:app")
    for id_ in ids:
        job = stage.until_status(id_, "completed")
        assert (job.attempt, job.failures, job.result) == (1, 0, 1)
    stage.close_down()


def test_a_worker_that_knows_none_of_the_waiting_types_neither_spins_nor_misses_its_own(stage: Stage) -> None:
    write_press(stage.folder)
    # A worker that knows `block`, and has no slot left for the ones that wait.
    stage.worker("--concurrency", "1")
    blocked = stage.enqueue("block", 20, gate="gate")
    stage.until_started(blocked[:1])
    stranger = stage.worker(app="press:app").runner()
    before = cpu_seconds(stranger)
    let_pass(2)
    assert cpu_seconds(stranger) - before < 1, "it spins"
    id_ = stage.enqueue_one("press", sheet=2)
    stage.until_status(id_, "completed")
    assert stage.job(blocked[-1]).status == "pending"
    stage.open("gate")
    until(lambda: len(stage.history.ends(type="block")) == 20, "the others run")
    stage.until_finished()
    stage.close_down()
