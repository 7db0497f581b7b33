"""The tasks of the bench. The store is WINDLASS_STORE, as for any app."""

import time

from windlass.client.app import App

FILLER = "x" * 64
"""A payload of ordinary size: {"n": 1, "s": "xxx…"}."""

app = App()


@app.task
async def noop(n: int, s: str) -> None:
    """Do nothing, so that only the cost of the queue is measured."""


@app.task
async def latency(enqueued: int) -> int:
    """Nanoseconds from the call that enqueues to this line, on the clock that all processes of a machine share."""
    return time.monotonic_ns() - enqueued
