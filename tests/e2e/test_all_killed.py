"""A worker of which every process is killed: its jobs are put back, though no process that is left keeps a lease."""

import signal
from pathlib import Path

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import signal_all


@on_every_store
def test_jobs_are_put_back_by_a_worker_whose_runners_die_all_the_time(den: Stage) -> None:
    Path(den.folder, "dying.py").write_text(
        "import os, threading\n"
        "from rogues import app\n"
        "app.queue('other')\n"
        "threading.Timer(1.0, os._exit, [3]).start()\n"
    )
    worker = den.worker(app="rogues:app")
    id_ = den.enqueue_one("thread.wait", {"max_attempts": 5, "timeout": None}, gate="never")
    den.until_started([id_])
    signal_all([worker.pid, *worker.runners()], signal.SIGKILL)
    other = den.start_worker("--queues", "other", app="dying:app")
    job = den.until_status(id_, "pending")
    assert (job.rescues, job.crashes, job.failures) == (1, 0, 0)
    other.kill()
