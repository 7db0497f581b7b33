"""Signals to every process of a worker at once, as systemd and terminals send them; runners that are killed."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.support.parts import extended
from tests.support.processes import Process, alive, children, command, let_pass, signal_all, until
from windlass.worker.stop_signals import SAME_REQUEST_SECONDS

KINDS = ("async.wait", "thread.wait", "process.wait")


def cells(worker: Process) -> list[int]:
    """The processes in which `run_in="process"` handlers run."""
    found = [pid for runner in worker.runners() for pid in children(runner)]
    return [pid for pid in found if b"windlass.worker.handlers.process_main" in command(pid)]


def every_process(worker: Process) -> list[int]:
    """A worker's processes, the innermost first: the signal is there before a process could have passed it on."""
    return [*cells(worker), *worker.runners(), worker.pid]


def enqueue_jobs(den: Stage, gate: str) -> list[str]:
    return [den.enqueue_one(kind, {"max_attempts": 1, "timeout": None}, gate=gate) for kind in KINDS]


@pytest.mark.parametrize("number", [signal.SIGTERM, *extended([signal.SIGHUP, signal.SIGINT])])
def test_a_signal_to_every_process_drains_and_counts_no_failure(den: Stage, number: signal.Signals) -> None:
    worker = den.worker("--drain", "30s", app="rogues:app")
    ending, staying = enqueue_jobs(den, "soon"), enqueue_jobs(den, "late")
    den.until_started([*ending, *staying])
    handlers = cells(worker)
    assert len(handlers) == 2
    signal_all(every_process(worker), number)
    until(lambda: "stopping" in worker.output, "the drain begins")
    assert all(map(alive, handlers))
    den.open("soon")
    for id_ in ending:
        job = den.until_status(id_, "completed", "dead")
        assert (job.status, job.attempt, job.failures, job.crashes) == ("completed", 1, 0, 0), job.error
    # SIGHUP does not insist; a second of the others does.
    let_pass(2 * SAME_REQUEST_SECONDS)
    signal_all(every_process(worker), signal.SIGTERM if number is signal.SIGHUP else number)
    assert worker.wait() == 0
    for id_ in staying:
        job = den.job(id_)
        assert (job.status, job.requeues, job.failures, job.crashes) == ("pending", 1, 0, 0), job.error
    until(lambda: not any(map(alive, handlers)), "the processes of handlers are ended")
    den.open("late")
    den.worker(app="rogues:app")
    den.until_finished()
    den.check(again=staying)
    den.close_down()


def test_a_signal_while_the_process_of_a_handler_loads_the_app_is_not_its_jobs_fault(den: Stage) -> None:
    Path(den.folder, "slow.py").write_text(
        "import os, signal, time\n"
        "from pathlib import Path\n"
        "if os.environ.get('WINDLASS_HANDLER_PROCESS') and not Path('loading').exists():\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as while Python itself starts\n"
        "    Path('loading').write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        "from rogues import app\n"
    )
    worker = den.worker("--drain", "30s", app="slow:app")
    id_ = den.enqueue_one("process.wait", {"max_attempts": 1}, gate="gate")
    den.open("gate")
    path = Path(den.folder, "loading")
    until(lambda: path.exists() and path.read_text(), "it loads the app")
    signal_all([int(path.read_text()), *worker.tree()], signal.SIGTERM)
    job = den.until_status(id_, "completed", "dead", "failed")
    assert (job.status, job.failures, job.crashes) == ("completed", 0, 0), job.error
    assert worker.wait() == 0


@pytest.mark.parametrize("kind", ["process", *extended(["thread", "async"])])
def test_what_a_handler_starts_still_ends_on_a_signal_and_nothing_else_does(den: Stage, kind: str) -> None:
    id_ = den.enqueue_one(f"{kind}.start_and_stop_others", what="")
    worker = den.worker("--until-empty", app="rogues:app")
    assert worker.wait() == 0
    job = den.job(id_)
    assert (job.result, job.attempt) == ([-signal.SIGTERM, -signal.SIGHUP, -signal.SIGTERM], 1)
    # Its runner was not told to end: only the whole worker was, when there was nothing left to do.
    assert worker.output.index("stopping") < worker.output.index("ended: exit code")


@pytest.mark.parametrize("how", ["setsid", *extended(["plain"])])
def test_when_a_runner_is_killed_the_children_of_its_handlers_processes_end_too(den: Stage, how: str) -> None:
    id_ = den.enqueue_one("leave_child_and_wait", {"max_attempts": 5}, how=how)
    worker = den.worker(app="rogues:app")
    path = Path(den.folder, f"child-{id_}")
    child = int(until(lambda: path.exists() and path.read_text(), "the handler has a child"))
    (cell,) = cells(worker)
    os.kill(worker.runner(), signal.SIGKILL)
    until(lambda: not alive(cell), "the handler's process is ended")
    until(lambda: not alive(child), "its child is ended")
    until(lambda: len(den.history.starts(id_)) == 2, "the job runs again")
    until(lambda: path.read_text() != str(child), "it has a child again")
    worker.kill()
