"""Ports for servers that a test stops and starts again."""

import os
import random
import socket

OURS = range(26_000, 32_000)
"""Below the ports that clients are given: one of those may be taken, or reach itself, while the server is down."""
OF_CLUSTERS = range(10_000, 16_000)
"""Nodes of a Redis Cluster talk to each other BUS ports higher: also below those of clients, and none of OURS."""
BUS = 10_000

_given: set[int] = set()
"""A server that is not started yet leaves its port free: no port is given twice."""


def free_port(within: range = OURS) -> int:
    """A port that no process listens on, from the part of the range that belongs to this process of pytest."""
    part = _part_of_this_process(within)
    for port in random.SystemRandom().sample(part, 100):
        if port not in _given and _is_free(port) and (within is not OF_CLUSTERS or _is_free(port + BUS)):
            _given.add(port)
            return port
    raise OSError(f"none of 100 ports from {part.start} to {part.stop} is free")


def _part_of_this_process(within: range) -> range:
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % count
    size = len(within) // count
    return within[number * size : (number + 1) * size]


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
