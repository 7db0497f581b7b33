"""Everything stands still for longer than a lease: a machine that is suspended, or moved to another host."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from tests.support.processes import let_pass, stopped, until
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis


def paused_machine(nemesis: Nemesis, server: Callable[[], list[int]]) -> None:
    """`server` lists the processes of the server; they stop last and go on in any order with the others."""
    with long_fault(nemesis, "pause the machine") as seconds:
        paused = _stop(nemesis.yard.processes.ours)
        paused |= _stop(server)
        let_pass(seconds)
        pids = sorted(paused)
        nemesis.dice.shuffle(pids)
        _send(pids, signal.SIGCONT)


def _stop(listed: Callable[[], list[int]]) -> set[int]:
    """Until no process is found that was not stopped: one may have been starting another."""
    done: set[int] = set()
    while fresh := set(listed()) - done:
        _send(sorted(fresh), signal.SIGSTOP)
        until(lambda: all(map(stopped, fresh)), "they have stopped")
        done |= fresh
    return done


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
