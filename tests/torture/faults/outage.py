"""The server is away for longer than a lease, and comes back to workers that have free slots."""

import signal
from collections.abc import Callable

from tests.support.processes import let_pass, signal_all
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

DELAYS = (0.0, 1.0, 1.0)
"""Seconds by which supervisors are late to notice that it is back: then runners claim before leases are renewed."""


def outage(nemesis: Nemesis, stop: Callable[[], None], start: Callable[[], None]) -> None:
    supervisors = [worker.pid for worker in nemesis.workers]
    with long_fault(nemesis, "the server is away") as seconds:
        stop()
        let_pass(seconds)
        signal_all(supervisors, signal.SIGSTOP)
        start()
        let_pass(nemesis.dice.choice(DELAYS))
        signal_all(supervisors, signal.SIGCONT)
