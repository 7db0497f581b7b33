"""The tasks of the bench. The store is WINDLASS_STORE, as for any app."""

import os
import time

from windlass.client.app import App

STAMPS = "WINDLASS_BENCH_STAMPS"

app = App()


@app.task
async def noop(n: int, s: str) -> None:
    """Nothing, on the loop: what is left is the cost of the queue."""


@app.task
def noop_thread(n: int, s: str) -> None:
    """Nothing, in a thread."""


@app.task
async def link(n: int, s: str) -> int:
    """Nothing, but with a result for whoever comes after it."""
    return n


@app.task
async def stamp(sent: int) -> None:
    """Leave the moment of hand-in and that of the start, on the clock that all processes share."""
    started = time.monotonic_ns()
    with open(os.environ[STAMPS], "a") as file:  # noqa: ASYNC230 - peers do just this, and the stamp is taken
        file.write(f"{sent} {started}\n")
