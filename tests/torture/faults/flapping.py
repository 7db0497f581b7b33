"""The server goes away for longer than a lease again and again, and is back in between for a moment only."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from tests.support.processes import let_pass, signal_all
from tests.torture.faults.long_jobs import MARGIN, long_fault
from tests.torture.nemesis import Nemesis
from windlass import WindlassError

TIMES = 4
UP = (0.0, 0.3)
"""Seconds for which it is back after a look for lapsed leases: often too short for all renewals."""


def flapping(nemesis: Nemesis, stop: Callable[[], None], start: Callable[[], None]) -> None:
    """Supervisors sleep while it is back, all of them or one, and renew nothing; leases are checked."""
    away = nemesis.yard.lease + MARGIN
    with long_fault(nemesis, "the server comes and goes", seconds=TIMES * (away + MARGIN)):
        stop()
        for _ in range(TIMES):
            let_pass(away)
            late = [worker.pid for worker in nemesis.workers][: nemesis.dice.choice([1, 2, 2])]
            signal_all(late, signal.SIGSTOP)
            start()
            with suppress(WindlassError):  # it may be busy with its recovery
                asyncio.run(nemesis.yard.rescue())
            let_pass(nemesis.dice.uniform(*UP))
            stop()
            signal_all(late, signal.SIGCONT)
        start()
