"""The commands as a shell sees them: exit codes, what they say, and what they leave alone."""

import asyncio
import contextlib
import os
import signal

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import until

BROKEN = """
import windlass

app = windlass.App()


def prepare():
    raise LookupError("no such thing")


prepare()
"""


@on_every_store
def test_until_empty_ends_with_0_when_all_is_done(stage: Stage) -> None:
    stage.enqueue("quick", 50)
    retried = stage.enqueue_one("flaky", {"max_attempts": 5}, failures=1)
    far = stage.enqueue_one("quick", {"delay": 3600})
    worker = stage.start_worker("--until-empty")
    assert worker.wait() == 0
    assert stage.job(far).status == "scheduled"
    stage.check(again=[retried], unfinished=[far])
    stage.close_down()


@on_every_store
def test_a_queue_takes_no_more_slots_of_a_runner_than_it_is_given(stage: Stage) -> None:
    stage.enqueue("picture", 8, {"queue": "images"})
    stage.enqueue("quick", 20)
    stage.worker("--queues", "images:1,default", "--concurrency", "8")
    stage.until_finished()
    assert stage.history.most_at_once("picture") == 1
    stage.check()
    stage.close_down()


def test_an_app_that_fails_to_import_ends_with_2_and_shows_the_users_part_of_the_traceback(stage: Stage) -> None:
    (stage.folder / "broken.py").write_text(BROKEN)
    ids = stage.enqueue("quick", 3)
    worker = stage.start_worker(app="broken:app")
    assert worker.wait() == 2
    assert worker.output.startswith("error: importing broken:app failed:")
    assert "LookupError: no such thing" in worker.output
    assert worker.output.count('  File "') == 2, "only the two frames of the user's own module"
    assert "in prepare" in worker.output
    assert "importlib" not in worker.output
    assert [(job.status, job.attempt) for job in map(stage.job, ids)] == [("pending", 0)] * 3


def test_a_module_that_does_not_exist_is_one_line_and_ends_with_2(stage: Stage) -> None:
    worker = stage.start_worker(app="nowhere:app")
    assert worker.wait() == 2
    assert worker.output.startswith("error: there is no module 'nowhere'")
    assert len(worker.output.splitlines()) == 1


def test_a_syntax_error_names_its_line_and_ends_with_2(stage: Stage) -> None:
    (stage.folder / "broken.py").write_text("x = 1\nthis is so wrong\n")
    worker = stage.start_worker(app="broken:app")
    assert worker.wait() == 2
    assert 'broken.py", line 2' in worker.output
    assert "SyntaxError" in worker.output


def test_a_coordinator_alone_admits_and_rescues(stage: Stage) -> None:
    worker = stage.worker(lease="10m")
    running = stage.enqueue_one("block", gate="gate")
    stage.until_started([running])
    runner = worker.runner()
    for pid in (worker.pid, runner):
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    coordinator = stage.processes.start("coordinator", "-m", "windlass", "coordinator", "--store", stage.url)
    due = stage.enqueue_one("quick", {"delay": 0.3})
    stage.until_status(due, "pending")
    assert stage.until_status(running, "pending").rescues == 1
    assert stage.app.workers.list() == []
    coordinator.send(signal.SIGTERM)
    assert coordinator.wait() == 0
    stage.open("gate")
    stage.worker()
    stage.until_finished()
    stage.check(again=[running])
    stage.close_down()


def test_an_interrupt_in_the_terminal_is_a_graceful_stop(stage: Stage) -> None:
    worker = stage.worker("--processes", "2")
    ids = stage.enqueue("block", 4, gate="gate")
    stage.until_started(ids)
    until(lambda: worker.output.count("is ready") == 2, "both runners are there")
    # A terminal sends it to the whole group; runners leave it to their supervisor.
    for pid in worker.tree():
        with contextlib.suppress(ProcessLookupError):  # one that the list saw in passing
            os.kill(pid, signal.SIGINT)
    until(lambda: "stopping" in worker.output, "the drain begins")
    stage.open("gate")
    assert worker.wait() == 0
    stage.check()
    stage.close_down()


@on_every_store
def test_several_runners_share_the_work_and_each_signs_off(stage: Stage) -> None:
    worker = stage.worker("--processes", "3", "--concurrency", "2")
    ids = stage.enqueue("block", 6, gate="gate")
    stage.until_started(ids)
    assert len({effect.pid for effect in stage.history.starts()}) == 3
    (info,) = stage.app.workers.list()
    assert (info.pid, info.processes, info.slots) == (worker.pid, 3, 6)
    stage.open("gate")
    stage.until_finished()
    stage.check()
    stage.close_down()


@on_every_store
def test_the_loop_of_an_embedding_program_enqueues_too(stage: Stage) -> None:
    async def enqueue_jobs() -> list[str]:
        handles = await stage.app.aenqueue_many([stage.make("aquick") for _ in range(5)])
        return [handle.id for handle in handles]

    stage.ids += asyncio.run(enqueue_jobs())
    stage.worker()
    stage.until_finished()
    stage.check()
    stage.close_down()
