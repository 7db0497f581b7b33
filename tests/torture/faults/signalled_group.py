"""SIGTERM to every process of a worker at once, as systemd sends it, and the worker is started again."""

import os
import signal
from contextlib import suppress

from tests.support.processes import descendants
from tests.torture.faults.long_jobs import start_long_jobs
from tests.torture.nemesis import Nemesis


def signalled_group(nemesis: Nemesis, place: int) -> None:
    """Running jobs are requeued; none has crashed."""
    start_long_jobs(nemesis, nemesis.yard.lease)
    worker = nemesis.workers[place]
    with nemesis.fault("stop a group", worker.tree()):
        pids = [worker.pid, *descendants(worker.pid)]
        nemesis.dice.shuffle(pids)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        assert worker.wait() == 0
    nemesis.workers[place] = nemesis.start_worker()
