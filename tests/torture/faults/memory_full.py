"""A Redis has all the memory that it may have, for longer than a lease, and is given more."""

import time

from tests.support.processes import let_pass
from tests.support.servers.redis import RedisServer
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

FULL = 1 << 20
"""Bytes: less than any server uses."""
MAX_TURN = 0.03


def memory_full(nemesis: Nemesis, server: RedisServer) -> None:
    with long_fault(nemesis, "memory is full") as seconds:
        server.config(maxmemory=FULL)
        let_pass(seconds)
        server.config(maxmemory=0)


def memory_scarce(nemesis: Nemesis, server: RedisServer) -> None:
    """Full at one moment and not at the next: of a verb that takes several steps, only some are refused."""
    with long_fault(nemesis, "memory is scarce") as seconds:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for limit in (FULL, 0):
                server.config(maxmemory=limit)
                let_pass(nemesis.dice.uniform(0, MAX_TURN))
