"""Ports for servers that a test stops and starts again."""

import random
import socket

OURS = range(20_000, 32_000)
"""Below the ports that clients are given: one of those may be taken, or reach itself, while the server is down."""


def free_port(within: range = OURS) -> int:
    """One that nobody listens on."""
    for port in random.SystemRandom().sample(within, 100):
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"none of 100 ports from {within.start} to {within.stop} is free")
